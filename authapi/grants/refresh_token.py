"""`refresh_token`: exchanges a refresh token for a new access token, and for a successor if the client rotates (RFC 6749, 6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.grants.details import narrowed, without_details
from authapi.grants.targets import audience_of, target_refused
from authapi.grants.user_grant import Granted, UserGrant, access_for, punish, sender_of, stored_login
from authapi.models import Client, RefreshToken
from authapi.token_request import TokenRequest
from authapi.tokens.bindings import binding
from authapi.tokens.refresh_policy import RefreshPolicy
from authapi.tokens.refresh_tokens import (
    give_again,
    has_ended,
    is_reused,
    living_successor,
    locked_refresh_token,
    policy_of,
    renew,
)
from authapi.tokens.user_tokens import UserIssue
from foundation.database.transactions import unit_of_work

_FAILED_EXCHANGE = "ferrt"
_REUSED = "A refresh token was used again after its rotation: everything issued for its login was revoked."


class RefreshTokenGrant(UserGrant):
    """Exchanges a refresh token under the lock of its row.

    If a token is used again after its rotation, everything issued for its login is revoked.
    """

    name = "refresh_token"
    takes_details = True

    def granted(self, request: TokenRequest, client: Client) -> Granted:
        token = request.required("refresh_token")
        exchanged = _exchanged(request, client, token)
        if exchanged is None:
            raise RequestRefused(OAuthCase.INVALID_REFRESH_TOKEN)
        return exchanged


@unit_of_work
def _exchanged(request: TokenRequest, client: Client, token: str) -> Granted | None:
    """Return the tokens to issue for the refresh token.

    If the token was used again after its rotation, revoke everything issued for its login and return None. Raises `RequestRefused`; the
    token then stays valid.
    """
    row = locked_refresh_token(tenant_id=request.host.tenant_id, token=token)
    if row is None or row.application_id != client.pk:
        raise RequestRefused(OAuthCase.INVALID_REFRESH_TOKEN)
    policy, now = policy_of(client), timezone.now()
    if is_reused(row, policy, now=now):
        punish(row, request, client, code=_FAILED_EXCHANGE, description=_REUSED, family=str(row.lineage))
        return None
    if row.user.blocked:
        # Blocking the user has revoked this token. While the user is blocked, the text of the error says so, because clients compare this
        # text.
        raise RequestRefused(LoginCase.USER_BLOCKED)
    if has_ended(row, policy, now=now) or not is_holder(row, request, client, now=now):
        raise RequestRefused(OAuthCase.INVALID_REFRESH_TOKEN)
    # A client that lost the response sends its old token again, and gets the same successor again. With a new successor, one login would
    # have two valid refresh tokens.
    lost = living_successor(row, policy, now=now) if row.is_rotated else None
    if row.is_rotated and lost is None:
        raise RequestRefused(OAuthCase.INVALID_REFRESH_TOKEN)
    login, access, until = access_for(asked(stored_login(row, request, client, grant="refresh_token"), request, policy))
    issued: dict[str, Any] = {"access": access, "until": until, "policy": policy, "sender": sender_of(request)}
    return Granted(login, access, renew(row, **issued) if lost is None else give_again(lost, **issued))


def is_holder(row: RefreshToken, request: TokenRequest, client: Client, *, now: datetime) -> bool:
    """Tell whether the sender may use the token. A token for `online_access` is valid only while its session exists. A bound token of a
    public client requires the proof of its key."""
    scopes = row.scope.split()
    is_online = "online_access" in scopes and "offline_access" not in scopes
    # The row of an expired session stays until a task deletes it, so the expiry must be checked, too. Checking the idle expiry is enough,
    # because it is never after the absolute expiry.
    if is_online and (row.session is None or row.session.idle_expires_at <= now):
        return False
    # RFC 9449, 5 and RFC 8705, 4: the refresh token of a public client is bound to the key of the client, because the client has no other
    # authentication. Other clients may change their key.
    return not (client.is_public and row.confirmation) or binding(request) == row.confirmation


def asked(login: UserIssue, request: TokenRequest, policy: RefreshPolicy) -> UserIssue:
    """Return the login, limited to the scopes and details that this request names. Scopes that are not granted are dropped, and cause no
    error.

    An API other than the API of the first token must be listed in the client's policies (contract, 4.6).
    """
    audience, scope = audience_of(request), request.text("scope")
    if audience is not None and audience != login.audience:
        if audience not in policy.audiences:
            raise _not_in_policy(request, audience)
        known = tuple(value for value in login.scopes if value in _KEPT) + policy.audiences[audience]
        login = replace(without_details(login), audience=audience, scopes=known)
    login = narrowed(login, request)
    if scope is None:
        return login
    wanted = frozenset(scope.split())
    return replace(login, scopes=tuple(value for value in login.scopes if value in wanted))


def _not_in_policy(request: TokenRequest, audience: str) -> RequestRefused:
    if request.text("audience") is None:
        return target_refused("The refresh token is not valid for this resource.")
    return RequestRefused(OAuthCase.AUDIENCE_NOT_IN_POLICY, audience=audience[:200])


# Scopes about the profile of the user. They stay if the client requests a token for another API.
_KEPT = frozenset({"openid", "profile", "email", "phone", "address"})
