"""What the grants for users share: from the login that a grant found to the answer of the token endpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from oauthlib.oauth2.rfc6749.grant_types.base import GrantTypeBase

from authapi.failures import Case, RequestRefused
from authapi.grants.issuing import Issue, binding
from authapi.grants.user_access import ends_at, still_granted, user_access
from authapi.grants.user_tokens import UserIssue
from authapi.login.organizations import check_membership
from authapi.models import AuthorizationCode, Client, RefreshToken
from authapi.services.refresh_tokens import Sender
from authapi.token_request import TokenRequest
from authapi.tokens.entitlements import UserEntitlement
from authapi.tokens.id_tokens import id_token


@dataclass(frozen=True)
class Granted:
    """What a grant has decided and stored; the tokens are signed after its transaction."""

    login: UserIssue
    access: Issue
    refresh_token: str | None = field(default=None, repr=False)


class UserGrant(GrantTypeBase):  # type: ignore[misc]  # the engine has no types
    """A grant of the engine whose answer is for a user. `granted` is what each of them does in its own way."""

    name = ""

    def granted(self, request: TokenRequest, client: Client) -> Granted:
        """Return what is to be issued, with everything stored and committed; raise `RequestRefused`."""
        raise NotImplementedError

    def create_token_response(self, request: Any, token_handler: Any) -> tuple[dict[str, str], str, int]:
        """Do what the engine asks of a grant: check, store, and answer through its token handler."""
        client: Client = request.client
        if not client.allows_grant_type(self.name):
            raise RequestRefused(Case.GRANT_NOT_ALLOWED, grant=self.name)
        granted = self.granted(request.token_request, client)
        request.issue = granted.access
        # Always in the answer: what was asked for and not granted is missing there (RFC 6749, 5.1).
        request.scopes = list(granted.login.scopes)
        request.extra_credentials = _credentials(granted)
        return self._get_default_headers(), json.dumps(token_handler.create_token(request)), 200


def access_for(login: UserIssue) -> tuple[UserIssue, Issue, datetime]:
    """Return the login with what is still granted, its access token to be, and when that will have expired.

    Raises `RequestRefused`. An opaque token is stored here: for the transaction of a grant.
    """
    login, entitlement = still_granted(login)
    return access_of(login, entitlement)


def access_of(login: UserIssue, entitlement: UserEntitlement) -> tuple[UserIssue, Issue, datetime]:
    """Do the same for scopes that were granted just now."""
    client = login.client
    if login.is_sign_in and client.algorithm == Client.HS256_ALGORITHM and not client.sealed_secret:
        # Found out before anything is used up: there will be no id token.
        raise RequestRefused(Case.NO_SIGNING_SECRET)
    if entitlement.resource is not None and entitlement.resource.is_system:
        # Edges do not forward certificates to the management interface, so nothing could be proven there.
        login = replace(login, confirmation=None)
    access = user_access(login, entitlement)
    return login, access, ends_at(access)


def stored_login(row: AuthorizationCode | RefreshToken, request: TokenRequest, client: Client, **changes: Any) -> UserIssue:
    """Return the login that a stored row tells of, bound to the certificate that came with this request.

    Raises `RequestRefused` for a user who is blocked or has left the organization since.
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
    )
    if row.user.blocked:
        raise RequestRefused(Case.USER_BLOCKED)
    if row.organization is not None:
        check_membership(row.organization, row.user)
    return replace(login, **changes)


def sender_of(request: TokenRequest) -> Sender:
    return Sender(ip=request.address, user_agent=request.headers.get("user-agent", ""))


def required(request: TokenRequest, parameter: str) -> str:
    """Return a parameter; raise `RequestRefused` naming the one that is missing."""
    value = request.text(parameter)
    if value is None:
        raise RequestRefused(Case.MISSING_PARAMETER, parameter=parameter)
    return value


def _credentials(granted: Granted) -> dict[str, str]:
    credentials = {}
    if granted.refresh_token is not None:
        credentials["refresh_token"] = granted.refresh_token
    if granted.login.is_sign_in:
        credentials["id_token"] = id_token(granted.login)
    return credentials
