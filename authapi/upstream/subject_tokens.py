"""Logs a user in by a token of an external issuer. A token exchange profile defines which tokens of its type are accepted, and how the user
of a token is found.

In the upstream service, code of the tenant makes this decision. This service runs no code of tenants: it checks the signature, issuer,
audience and times of the token with the values of the profile. It accepts each token once, unless the profile permits more uses.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from authapi.accounts.event_context import context_of
from authapi.accounts.password_login import note_login_without_signals
from authapi.accounts.suspicion import EXCHANGE, count_attempt, is_suspicious, rate_of_suspicious
from authapi.accounts.user_lookup import named_user
from authapi.client_auth.replays import is_used, use_once
from authapi.client_auth.signatures import is_time
from authapi.edge.rate_figures import REFUSED_EXCHANGES
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.grants.exchange.own_tokens import ACCESS_TOKEN, is_held, may_exchange
from authapi.grants.password import check_entitlement, issued, person_behind
from authapi.grants.token_grant import TokenAnswer
from authapi.grants.user_grant import tokens_beside
from authapi.login.connections import client_connections
from authapi.login.organizations import check_membership, connections_within, wished_organization
from authapi.models import Client, TokenExchangeProfile
from authapi.services import sign_in_log
from authapi.token_request import TokenRequest
from authapi.tokens.refresh_tokens import Sender
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.id_token import LEEWAY_SECONDS, opened
from authapi.upstream.metadata import keys_of
from authapi.upstream.people import known_user, user_of
from authapi.upstream.proven import Proven
from foundation.change_context import change_context
from foundation.json_values import text_problem
from identity.models import Organization, User

CUSTOM = "custom_authentication"
_GRANT_CLAIM = "token-exchange"
_METHOD = "federated"
_SUCCESS, _FAILURE = "secte", "fecte"
# RFC 8725, 3.11: a token whose type names another purpose is refused. A logout token, for example, also has issuer, audience and subject.
_TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
# Tokens with these members are refused: `events` means that the token describes no login, and `act` that another party acts for the user.
_FOREIGN_MEMBERS = ("events", "act")
_LONGEST_SUBJECT = 255
_USED = "The token was exchanged before."


class _Unacceptable(Exception):
    """The token is refused; the text is for the sign-in log."""


def logged_in_by_token(request: TokenRequest, client: Client, kind: str) -> TokenAnswer:
    """Return tokens for the user of a subject token. Raises `RequestRefused`; the sign-in log has the reason.

    1. The client must be allowed to exchange such tokens, and a token exchange profile must have the type of the token.
    2. The IP address of the sender must have attempts left.
    3. The token is checked, and must name a user.
    4. The user is logged in, as with a password.
    """
    profile = _profile(client, kind)
    if request.text("actor_token") is not None or request.text("actor_token_type") is not None:
        raise RequestRefused(OAuthCase.TOKEN_TYPE_NOT_SUPPORTED, parameter="actor_token with the subject_token_type", type=kind[:100])
    organization = _organization(request, client, profile)
    check_entitlement(request, client)
    sender = person_behind(request, client)
    if is_suspicious(client.tenant_id, sender.ip, EXCHANGE):
        raise RequestRefused(LoginCase.SUSPICIOUS_ADDRESS, rate=rate_of_suspicious(client.tenant_id, EXCHANGE))
    user = _judged_user(request, client, profile, sender)
    if organization is not None:
        check_membership(organization, user)
    note_login_without_signals(user, sender.ip)
    _note(client, profile, sender, user=user)
    granted = issued(request, client, profile.connection, user, sender, methods=(_METHOD,), grant=_GRANT_CLAIM, organization=organization)
    return TokenAnswer(granted.access, granted.login.scopes, {**tokens_beside(granted), "issued_token_type": ACCESS_TOKEN})


def _profile(client: Client, kind: str) -> TokenExchangeProfile:
    """Return the profile of a type. Raises `RequestRefused`, also if the client does not use the connection of the profile."""
    if not may_exchange(client, CUSTOM):
        raise RequestRefused(
            OAuthCase.EXCHANGE_NOT_ALLOWED, reason=f"The client must be first-party, and its setting token_exchange must allow {CUSTOM}."
        )
    rows = TokenExchangeProfile.objects.of(client.tenant_id).select_related("connection")
    profile = rows.filter(subject_token_type=kind[:100]).first()
    if profile is None or profile.subject_token_type != kind:
        raise RequestRefused(OAuthCase.TOKEN_TYPE_NOT_SUPPORTED, parameter="subject_token_type", type=kind[:100])
    if all(one.pk != profile.connection_id for one in client_connections(client)):
        raise RequestRefused(LoginCase.UNKNOWN_CONNECTION)
    return profile


def _organization(request: TokenRequest, client: Client, profile: TokenExchangeProfile) -> Organization | None:
    organization = wished_organization(client, request.text("organization") or "")
    if organization is None and client.settings.get("organization_usage") == "require":
        # No page can ask for the organization, so the request must name it.
        raise RequestRefused(LoginCase.ORGANIZATION_REQUIRED)
    if organization is not None and not connections_within(organization, [profile.connection]):
        raise RequestRefused(LoginCase.UNKNOWN_CONNECTION)
    return organization


def _judged_user(request: TokenRequest, client: Client, profile: TokenExchangeProfile, sender: Sender) -> User:
    try:
        claims = _claims(request, client, profile)
        _check_unused(profile, claims, request.required("subject_token"))
        with change_context(context_of(request.host, client, ip=sender.ip, user_agent=sender.user_agent)):
            user = _user(profile, claims)
        if user.blocked:
            raise UpstreamFailed(LoginCase.USER_BLOCKED)
        _use_up(profile, claims, request.required("subject_token"))
    except UpstreamFailed as failed:
        _note(client, profile, sender, problem=f"{failed.failure.description} {failed.detail}")
        if failed.case in (LoginCase.UPSTREAM_UNREACHABLE, LoginCase.USER_BLOCKED):
            raise
        count_attempt(client.tenant_id, sender.ip, EXCHANGE)
        raise RequestRefused(OAuthCase.INVALID_SUBJECT_TOKEN) from failed
    except _Unacceptable as error:
        _note(client, profile, sender, problem=str(error))
        count_attempt(client.tenant_id, sender.ip, EXCHANGE)
        raise RequestRefused(OAuthCase.INVALID_SUBJECT_TOKEN) from error
    return user


def _claims(request: TokenRequest, client: Client, profile: TokenExchangeProfile) -> Mapping[str, Any]:
    """Return the claims of a token that is valid for this profile now. Raises `UpstreamFailed` or `_Unacceptable`."""
    keys = partial(keys_of, profile.jwks_uri) if profile.jwks_uri else partial(_own_keys, profile)
    decoded = opened(request.required("subject_token"), keys)
    claims, kind = decoded.claims, decoded.header.get("typ", "")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise _Unacceptable("The type of the token names another purpose.")
    audience = claims.get("aud")
    if claims.get("iss") != profile.issuer or profile.audience not in (audience if isinstance(audience, list) else [audience]):
        raise _Unacceptable("The issuer or the audience of the token is wrong.")
    _check_times(claims)
    foreign = next((name for name in _FOREIGN_MEMBERS if name in claims), None)
    if foreign is not None:
        raise _Unacceptable(f"The token has the member {foreign}, so it does not describe a login.")
    _check_actor(claims.get("may_act"), client)
    confirmation = claims.get("cnf")
    if confirmation is not None and not (isinstance(confirmation, dict) and confirmation and is_held(confirmation, request)):
        raise _Unacceptable("The token is bound to a key or a certificate, but the sender did not prove possession.")
    return claims


def _check_times(claims: Mapping[str, Any]) -> None:
    now = time.time()
    ends, begins = claims.get("exp"), [claims.get(name, now) for name in ("iat", "nbf")]
    if (
        not is_time(ends)
        or ends <= now - LEEWAY_SECONDS
        or not all(is_time(moment) and moment <= now + LEEWAY_SECONDS for moment in begins)
    ):
        raise _Unacceptable("The token has expired, is not valid yet, or has no valid exp.")


def _check_actor(allowed: Any, client: Client) -> None:
    """Raise `_Unacceptable` if the token names a party that may act with it, and this party is not the client (RFC 8693, 4.4)."""
    if allowed is not None and not (isinstance(allowed, dict) and allowed.get("sub") == client.client_id):
        raise _Unacceptable("The member `may_act` of the token names another party.")


def _user(profile: TokenExchangeProfile, claims: Mapping[str, Any]) -> User:
    """Return the user of the claims. Raises `UpstreamFailed` or `_Unacceptable`."""
    if profile.user_claim == TokenExchangeProfile.UserClaim.EMAIL:
        return _user_of_address(profile, claims)
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT or text_problem(subject):
        raise _Unacceptable("The token has no valid subject.")
    user = user_of(profile.connection, Proven(claims)) if profile.creates_users else known_user(profile.connection, subject)
    if user is None:
        raise _Unacceptable("No user of the connection has this subject.")
    return user


def _user_of_address(profile: TokenExchangeProfile, claims: Mapping[str, Any]) -> User:
    """Return the user of an email address that both the issuer and this service have verified. An unverified address proves nothing."""
    address = claims.get("email")
    if not isinstance(address, str) or claims.get("email_verified") is not True:
        raise _Unacceptable("The token has no verified email address.")
    user = named_user(profile.connection, address)
    if user is None or not user.email_verified or (user.email or "").lower() != address.lower():
        raise _Unacceptable("No user of the connection has verified this address.")
    return user


def _check_unused(profile: TokenExchangeProfile, claims: Mapping[str, Any], token: str) -> None:
    """Raise `_Unacceptable` for a token that was used before: its old claims must not overwrite the user's profile."""
    if profile.is_single_use and is_used(**_use_of(profile, claims, token)):
        raise _Unacceptable(_USED)


def _use_up(profile: TokenExchangeProfile, claims: Mapping[str, Any], token: str) -> None:
    """Record the use of a token. Raises `_Unacceptable` for a second use."""
    until = float(claims["exp"]) + LEEWAY_SECONDS
    if profile.is_single_use and not use_once(**_use_of(profile, claims, token), until=until):
        raise _Unacceptable(_USED)


def _use_of(profile: TokenExchangeProfile, claims: Mapping[str, Any], token: str) -> dict[str, str]:
    """Return the key under which a use is recorded: the id of the token, or a digest of the token if it has no id."""
    jti = claims.get("jti")
    name = jti if isinstance(jti, str) and jti else hashlib.sha256(token.encode()).hexdigest()
    return {"tenant_id": profile.tenant_id, "client_id": f"exchange\x00{profile.issuer}", "jti": name}


def _own_keys(profile: TokenExchangeProfile, *, is_key_unknown: bool = False) -> list[dict[str, Any]]:
    return list(profile.public_keys)


def _note(client: Client, profile: TokenExchangeProfile, sender: Sender, *, user: User | None = None, problem: str = "") -> None:
    if problem and not REFUSED_EXCHANGES.takes(client.tenant_id, client.client_id):
        # Write no line above this rate. Any sender can name a public client, and a flood of invalid tokens must not fill the sign-in log.
        return
    sign_in_log.note(
        tenant_id=client.tenant_id,
        type=_FAILURE if problem else _SUCCESS,
        is_success=not problem,
        description=problem,
        user=user,
        client=client,
        connection=profile.connection.name,
        ip=sender.ip,
        user_agent=sender.user_agent,
        details={"type": CUSTOM, "profile": profile.pk},
    )
