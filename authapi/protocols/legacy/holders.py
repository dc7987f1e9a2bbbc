"""Finds, for old endpoints, the user of an access token with which a client may read the profile."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.models import Client
from authapi.protocols.legacy.requests import client_named
from authapi.tokens.opaque_tokens import find_opaque_token
from authapi.tokens.verifying import TokenRefused, verify_profile_token
from identity.hosts import HostMatch
from identity.models import User

_LONGEST = 8192


@dataclass(frozen=True)
class Holder:
    """The user of an access token, and the client that got it."""

    user: User
    client: Client


def holder_of(token: str, host: HostMatch) -> Holder:
    """Return the user and client of a token. Raises `RequestRefused`, also for tokens of another tenant, as if they did not exist.

    A token that is bound to a key is refused, because old endpoints do not check that key.
    """
    found = _of_jwt(token, host) if token.count(".") == 2 else _of_row(token, host)
    if found is None or found[0].user.blocked or "openid" not in found[1]:
        raise RequestRefused(LegacyCase.INVALID_ACCESS_TOKEN)
    return found[0]


def _of_jwt(token: str, host: HostMatch) -> tuple[Holder, Collection[str]] | None:
    try:
        claims, _switches = verify_profile_token(token, host=host)
    except TokenRefused:
        return None
    user = User.objects.of(host.tenant_id).select_related("connection").filter(user_id=claims.subject).first()
    client = client_named(host.tenant_id, claims.client_id)
    if user is None or client is None or claims.confirmation:
        return None
    return Holder(user, client), claims.scopes


def _of_row(token: str, host: HostMatch) -> tuple[Holder, Collection[str]] | None:
    row = find_opaque_token(tenant_id=host.tenant_id, token=token) if 0 < len(token) <= _LONGEST else None
    if row is None or row.user is None or row.application is None or row.confirmation or not row.application.is_usable(None):
        return None
    return Holder(row.user, row.application), row.scope.split()
