"""Tokens for a request that a user approves in another browser: for a device (RFC 8628) or for a server (OpenID CIBA Core 1.0)."""

from __future__ import annotations

from dataclasses import replace

from django.utils import timezone

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.grants.details import narrowed
from authapi.grants.user_grant import Granted, access_for, sender_of
from authapi.login.organizations import check_membership
from authapi.models import CibaRequest, Client, DeviceGrant
from authapi.token_request import TokenRequest
from authapi.tokens.asked import asked_of
from authapi.tokens.bindings import binding
from authapi.tokens.refresh_tokens import issue_refresh_token
from authapi.tokens.user_tokens import UserIssue
from identity.models import User


def granted_elsewhere(row: CibaRequest | DeviceGrant, user: User, request: TokenRequest, client: Client) -> Granted:
    """Return the tokens to issue for an approved row, and mark the row as used. The caller holds the lock of the row.

    Raises `RequestRefused` if the user is now blocked or has left the organization.
    """
    if user.blocked:
        raise RequestRefused(LoginCase.USER_BLOCKED)
    if row.organization is not None:
        check_membership(row.organization, user)
    login = UserIssue(
        host=request.host,
        client=client,
        user=user,
        connection=user.connection,
        audience=row.audience,
        scopes=tuple(row.scope.split()),
        session=None,
        organization=row.organization,
        auth_time=row.auth_time or row.created,
        methods=row.methods,
        nonce="",
        lineage=row.lineage,
        confirmation=binding(request),
        asked=asked_of(row.asked),
    )
    whole = login.asked
    login, access, until = access_for(narrowed(login, request))
    row.used_at, row.issued_jti, row.issued_until = timezone.now(), access.jti, until
    row.save(update_fields=["used_at", "issued_jti", "issued_until"])
    refresh_token = None
    if login.wants_refresh_token:
        refresh_token = issue_refresh_token(replace(login, asked=whole), access=access, until=until, sender=sender_of(request))
    return Granted(login, access, refresh_token)
