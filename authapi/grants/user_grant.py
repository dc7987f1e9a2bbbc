"""The part that all grants for users share: turns the login that a grant has found into the answer of the token endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from authapi.details.types import MEMBER as DETAILS
from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.grants.entitlements import UserEntitlement
from authapi.grants.token_grant import TokenAnswer, TokenGrant
from authapi.grants.user_access import ends_at, still_granted, user_access
from authapi.login.organizations import check_membership
from authapi.models import AuthorizationCode, Client, RefreshToken
from authapi.services.sign_in_log import note
from authapi.token_request import TokenRequest
from authapi.tokens.asked import asked_of
from authapi.tokens.bindings import binding, bound_to
from authapi.tokens.id_tokens import id_token
from authapi.tokens.minting import Issue
from authapi.tokens.refresh_tokens import Sender
from authapi.tokens.revocation import revoke_lineage
from authapi.tokens.signing import SHARED
from authapi.tokens.user_tokens import UserIssue


@dataclass(frozen=True)
class Granted:
    """What a grant has decided and stored. The tokens are signed after its transaction."""

    login: UserIssue
    access: Issue
    refresh_token: str | None = field(default=None, repr=False)


class UserGrant(TokenGrant):
    """A grant whose answer is for a user. Each grant implements `granted`."""

    def granted(self, request: TokenRequest, client: Client) -> Granted:
        """Return what to issue, after all rows are stored and committed. Raises `RequestRefused`."""
        raise NotImplementedError

    def answer(self, request: TokenRequest, client: Client) -> TokenAnswer:
        granted = self.granted(request, client)
        # The answer always contains the granted scopes, because they may differ from the requested scopes (RFC 6749, 5.1).
        return TokenAnswer(granted.access, granted.login.scopes, tokens_beside(granted))


def access_for(login: UserIssue) -> tuple[UserIssue, Issue, datetime]:
    """Return three things: the login with its remaining scopes, the access token to issue, and when this token expires.

    Raises `RequestRefused`. This function stores an opaque token, so call it in the transaction of a grant.
    """
    login, entitlement = still_granted(login)
    return access_of(login, entitlement)


def access_of(login: UserIssue, entitlement: UserEntitlement) -> tuple[UserIssue, Issue, datetime]:
    """Do what `access_for` does, for an `entitlement` that the caller has just computed."""
    client = login.client
    if login.is_sign_in and client.id_token_algorithm == SHARED and not client.sealed_secret:
        # Without a client secret, the service cannot sign the ID token. Refuse now, before a code or token is used up.
        raise RequestRefused(OAuthCase.NO_SIGNING_SECRET)
    confirmation = bound_to(login.confirmation, client=client, resource=entitlement.resource)
    if confirmation != login.confirmation:
        login = replace(login, confirmation=confirmation)
    access = user_access(login, entitlement)
    return login, access, ends_at(access)


def stored_login(
    row: AuthorizationCode | RefreshToken, request: TokenRequest, client: Client, *, grant: str = "", **changes: Any
) -> UserIssue:
    """Return the login that a row stores, bound to the key or certificate of this request.

    Raises `RequestRefused` if the user is now blocked or has left the organization.
    """
    login = UserIssue(
        host=request.host,
        client=client,
        user=row.user,
        connection=row.user.connection,
        audience=row.audience,
        scopes=tuple(row.scope.split()),
        session=row.session,
        organization=row.organization,
        auth_time=row.auth_time or row.created,
        methods=row.methods,
        nonce="",
        lineage=row.lineage,
        confirmation=binding(request),
        grant=grant,
        asked=asked_of(row.asked),
    )
    if row.user.blocked:
        raise RequestRefused(LoginCase.USER_BLOCKED)
    if row.organization is not None:
        check_membership(row.organization, row.user)
    return replace(login, **changes) if changes else login


def sender_of(request: TokenRequest) -> Sender:
    return Sender(ip=request.address, user_agent=request.headers.get("user-agent", ""))


def punish(
    row: AuthorizationCode | RefreshToken, request: TokenRequest, client: Client, *, code: str, description: str, **details: str
) -> None:
    """Revoke everything issued for a login because its code or token was used again, and write a line to the sign-in log.

    The caller holds the lock of the row (RFC 6749, 4.1.2; RFC 9700, 4.14.2).
    """
    revoke_lineage(tenant_id=row.tenant_id, lineage=row.lineage)
    sender = sender_of(request)
    note(
        tenant_id=row.tenant_id,
        type=code,
        is_success=False,
        description=description,
        user=row.user,
        client=client,
        connection=row.user.connection.name,
        ip=sender.ip,
        user_agent=sender.user_agent,
        details=dict(details),
    )


def tokens_beside(granted: Granted) -> dict[str, Any]:
    """Return the members that an answer has apart from the access token: the refresh token, the ID token and the details. Raises
    `RequestRefused`."""
    beside: dict[str, Any] = {}
    if granted.refresh_token is not None:
        beside["refresh_token"] = granted.refresh_token
    if granted.login.is_sign_in:
        beside["id_token"] = id_token(granted.login)
    if granted.login.asked is not None and granted.login.asked.details:
        beside[DETAILS] = list(granted.login.asked.details)
    return beside
