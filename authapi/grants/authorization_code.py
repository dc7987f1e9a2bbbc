"""`authorization_code`: exchanges a code of the authorization endpoint for tokens, once (RFC 6749, 4.1.3; RFC 7636, 4.6)."""

from __future__ import annotations

import hmac
import re
from dataclasses import replace

from django.utils import timezone
from oauthlib.oauth2.rfc6749.grant_types.authorization_code import code_challenge_method_s256

from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.grants.details import narrowed
from authapi.grants.targets import RESOURCE, audience_of, target_refused
from authapi.grants.user_grant import Granted, UserGrant, access_for, punish, sender_of, stored_login
from authapi.models import AuthorizationCode, Client
from authapi.token_request import TokenRequest
from authapi.tokens.authorization_codes import locked_code
from authapi.tokens.bindings import KEY
from authapi.tokens.refresh_tokens import issue_refresh_token
from authapi.tokens.user_tokens import UserIssue
from foundation.database.transactions import unit_of_work

# RFC 7636, 4.1.
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_FAILED_EXCHANGE = "feacft"
_REPLAYED = "An authorization code was used again: everything issued for it was revoked."


class AuthorizationCodeGrant(UserGrant):
    """Exchanges a code under the lock of its row. A second exchange revokes the tokens of the first exchange."""

    name = "authorization_code"
    takes_details = True

    def granted(self, request: TokenRequest, client: Client) -> Granted:
        code = request.required("code")
        exchanged = _exchanged(request, client, code)
        if exchanged is None:
            raise RequestRefused(OAuthCase.INVALID_CODE)
        return exchanged


@unit_of_work
def _exchanged(request: TokenRequest, client: Client, code: str) -> Granted | None:
    """Return the tokens to issue for the code. If the code was used before, revoke everything issued for it and return None.

    Raises `RequestRefused`; the code then stays valid.
    """
    row = locked_code(tenant_id=request.host.tenant_id, code=code)
    if row is None or row.application_id != client.pk:
        raise RequestRefused(OAuthCase.INVALID_CODE)
    if row.used_at is not None:
        punish(row, request, client, code=_FAILED_EXCHANGE, description=_REPLAYED)
        return None
    _check(row, request, client)
    whole = stored_login(row, request, client, nonce=row.nonce)
    login, access, until = access_for(_asked(whole, request))
    row.used_at = timezone.now()
    row.issued_jti, row.issued_until = access.jti, max(until, row.issued_until or until)
    row.save(update_fields=["used_at", "issued_jti", "issued_until", "updated"])
    refresh_token = None
    if login.wants_refresh_token:
        # The refresh token has all granted details, even if this access token has fewer (RFC 9396, 6).
        refresh_token = issue_refresh_token(replace(login, asked=whole.asked), access=access, until=until, sender=sender_of(request))
    return Granted(login, access, refresh_token)


def _asked(login: UserIssue, request: TokenRequest) -> UserIssue:
    """Return the login with the authorization details that are in this request.

    Raises `RequestRefused` if the request contains more than the granted details, or names another API.
    """
    target = audience_of(request) if RESOURCE in request.form else None
    if target is not None and target != login.audience:
        # RFC 8707, 2.2: a code is for the API that the authorization request named.
        raise target_refused("The code is for another API.")
    return narrowed(login, request)


def _check(row: AuthorizationCode, request: TokenRequest, client: Client) -> None:
    # The client gets no tokens after the session has ended. Then `session` is empty, because the row of the session was deleted, and `sid`
    # still contains the id. A block of the user also ends the session. But a blocked user is refused with another error (`stored_login`),
    # because clients compare the error text.
    if row.is_expired() or (row.sid and row.session is None and not row.user.blocked):
        raise RequestRefused(OAuthCase.INVALID_CODE)
    redirect_uri = request.text("redirect_uri")
    if row.is_redirect_uri_given and redirect_uri is None:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="redirect_uri")
    # RFC 6749, 4.1.3: the URI in this request must equal the URI in the row. If the authorization request named no URI, the row contains
    # the registered URI that was used instead.
    if redirect_uri is not None and redirect_uri != row.redirect_uri:
        raise RequestRefused(OAuthCase.WRONG_REDIRECT_URI)
    _check_verifier(row, request.text("code_verifier"), client)
    if row.confirmation and row.confirmation.get(KEY) != request.key:
        # RFC 9449, 10: a stolen code is worthless without the key.
        raise RequestRefused(OAuthCase.WRONG_DPOP_KEY)


def _check_verifier(row: AuthorizationCode, verifier: str | None, client: Client) -> None:
    if not row.code_challenge:
        # RFC 9700, 2.1.1: a verifier without a challenge shows that an attacker removed the challenge from the authorization request.
        if verifier is not None or client.is_public:
            raise RequestRefused(OAuthCase.WRONG_CODE_VERIFIER)
        return
    if verifier is None:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="code_verifier")
    if _VERIFIER.fullmatch(verifier) is None or not _is_verified(row, verifier):
        raise RequestRefused(OAuthCase.WRONG_CODE_VERIFIER)


def _is_verified(row: AuthorizationCode, verifier: str) -> bool:
    if row.code_challenge_method == AuthorizationCode.CODE_CHALLENGE_S256:
        return bool(code_challenge_method_s256(verifier, row.code_challenge))
    # The method is `plain`, which the authorization endpoint accepts only from clients that opted in.
    return hmac.compare_digest(verifier, row.code_challenge)
