"""The grants by which an application sends a second factor: `mfa-otp`, `mfa-oob`, `mfa-recovery-code` (contract 2.3)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from authapi.factors.association import confirm_address, confirm_app, open_enrollment
from authapi.factors.challenges import (
    ENROLL,
    Proven,
    Prover,
    TooManyGuesses,
    WrongProof,
    bound_to_transaction,
    check_code,
    check_otp,
    check_recovery_code,
    sent_by_handle,
)
from authapi.factors.kinds import TOTP, is_second_to, methods_of
from authapi.factors.limits import Whereabouts
from authapi.factors.settings import factor_settings
from authapi.factors.transactions import FirstProof, find_transaction, is_over, use_up
from authapi.failures import RequestRefused
from authapi.failures.factors import FactorCase
from authapi.failures.logins import LoginCase
from authapi.grants.password import person_behind, tokens_for
from authapi.grants.token_grant import TokenAnswer
from authapi.grants.user_grant import Granted, UserGrant, tokens_beside
from authapi.login.connections import client_connections
from authapi.models import Client, FactorTransaction
from authapi.token_request import TokenRequest
from authapi.tokens.refresh_tokens import Sender
from identity.factors.user_factors import factors_of

_PREFIX = "http://auth0.com/oauth/grant-type/"


class SecondFactorGrant(UserGrant):
    """Checks a second factor for the waiting login of an `mfa_token`, and issues the tokens that the login requested.

    Each `mfa_token` works once.
    """

    wrong: ClassVar[FactorCase]

    def answer(self, request: TokenRequest, client: Client) -> TokenAnswer:
        sender = person_behind(request, client)
        row = waiting_login(request, client)
        prover = prover_of(row, sender)
        try:
            proven = self.proven(request, row, prover)
        except WrongProof as refused:
            raise RequestRefused(self.wrong) from refused
        except TooManyGuesses as refused:
            raise RequestRefused(FactorCase.TOO_MANY_GUESSES, rate=refused.rate) from refused
        granted = self._issued(request, row, proven, sender)
        beside = tokens_beside(granted)
        if proven.recovery_code:
            beside["recovery_code"] = proven.recovery_code
        return TokenAnswer(granted.access, granted.login.scopes, beside)

    def proven(self, request: TokenRequest, row: FactorTransaction, prover: Prover) -> Proven:
        """Check the second factor. Raises `WrongProof`, `TooManyGuesses` and `RequestRefused`."""
        raise NotImplementedError

    def _issued(self, request: TokenRequest, row: FactorTransaction, proven: Proven, sender: Sender) -> Granted:
        if not use_up(row):
            raise RequestRefused(FactorCase.UNKNOWN_TOKEN)
        first = FirstProof(
            client=row.client,
            user=row.user,
            connection=row.connection,
            organization=row.organization,
            methods=tuple(dict.fromkeys((*row.methods, *methods_of(proven.kind)))),
            grant=row.grant,
            audience=row.audience or None,
            scope=row.scope,
            key=row.key,
            ip=row.ip,
        )
        return tokens_for(request, replace(first, key=request.key), sender)


class OtpGrant(SecondFactorGrant):
    """A code of an authenticator app. The first code confirms an app whose enrollment `/mfa/associate` began."""

    name = f"{_PREFIX}mfa-otp"
    wrong = FactorCase.WRONG_OTP

    def proven(self, request: TokenRequest, row: FactorTransaction, prover: Prover) -> Proven:
        code = request.required("otp")
        if open_enrollment(prover, TOTP) is not None:
            _require_offered(row, TOTP)
            return confirm_app(prover, code)
        require_enrolled(row, TOTP)
        return check_otp(prover, code)


class OobGrant(SecondFactorGrant):
    """A code that was sent by text message or mail. The first code confirms a phone or email address whose enrollment `/mfa/associate`
    began."""

    name = f"{_PREFIX}mfa-oob"
    wrong = FactorCase.WRONG_BINDING_CODE

    def proven(self, request: TokenRequest, row: FactorTransaction, prover: Prover) -> Proven:
        handle, code = request.required("oob_code"), request.required("binding_code")
        challenge = sent_by_handle(prover, handle)
        if challenge is None or challenge.factor is None:
            raise RequestRefused(FactorCase.WRONG_BINDING_CODE)
        _require_offered(row, challenge.factor.kind)
        if challenge.purpose == ENROLL:
            return confirm_address(prover, challenge, code)
        return check_code(prover, challenge.factor, code, challenge=challenge)


class RecoveryCodeGrant(SecondFactorGrant):
    """The recovery code, which replaces a lost factor. The answer contains the next recovery code."""

    name = f"{_PREFIX}mfa-recovery-code"
    wrong = FactorCase.WRONG_RECOVERY_CODE

    def proven(self, request: TokenRequest, row: FactorTransaction, prover: Prover) -> Proven:
        code = request.required("recovery_code")
        if not factor_settings(row.tenant_id).has_recovery_codes:
            raise RequestRefused(FactorCase.TYPE_NOT_OFFERED, type="recovery-code")
        return check_recovery_code(prover, code)


def waiting_login(request: TokenRequest, client: Client) -> FactorTransaction:
    """Return the waiting login of an `mfa_token`.

    Raises `RequestRefused`, with the same error for an unknown token and for a token of another client.
    """
    row = find_transaction(request.host.tenant_id, request.required("mfa_token"))
    # The tokens are bound to the key that the first request has proven, so this request must prove the same key (RFC 9449, 10).
    if row is None or row.client_id != client.pk or (row.key and row.key != request.key):
        raise RequestRefused(FactorCase.UNKNOWN_TOKEN)
    if is_over(row):
        raise RequestRefused(FactorCase.TOKEN_EXPIRED)
    if all(one.pk != row.connection_id for one in client_connections(client)):
        raise RequestRefused(LoginCase.UNKNOWN_REALM)
    return row


def prover_of(row: FactorTransaction, sender: Sender) -> Prover:
    """Return the user of a waiting login and the IP address of the sender."""
    place = Whereabouts(sender.ip, user_agent=sender.user_agent)
    return Prover(row.user, place, bound_to_transaction(row.pk), client=row.client, connection=row.connection.name)


def require_enrolled(row: FactorTransaction, kind: str) -> None:
    """Raise `RequestRefused` if the user or the tenant has no factor of this kind, or if the kind only repeats the first factor."""
    _require_offered(row, kind)
    if not factors_of(row.user, (kind,)):
        raise RequestRefused(FactorCase.ASSOCIATION_REQUIRED)


def _require_offered(row: FactorTransaction, kind: str) -> None:
    if kind not in factor_settings(row.tenant_id).kinds or not is_second_to(kind, frozenset(row.methods)):
        raise RequestRefused(FactorCase.TYPE_NOT_OFFERED, type=kind)
