"""Describes a token and tells whether it is valid now (RFC 7662, 2.2), with the facts that one client may see.

A client sees tokens that were issued to it, and access tokens for its own API. For all other tokens, the answer is the same as for an
unknown token.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from authapi.models import AccessToken, Client, RefreshToken
from authapi.tokens.asked import DETAILS, asked_of
from authapi.tokens.bindings import token_type
from authapi.tokens.claims import AccessTokenClaims
from authapi.tokens.opaque_tokens import find_opaque_token
from authapi.tokens.refresh_tokens import has_ended, policy_of
from authapi.tokens.verifying import TokenRefused, verify_own_token
from foundation.secrets.random_secrets import digest_of
from identity.hosts import HostMatch
from identity.models import User

_INACTIVE: dict[str, Any] = {"active": False}
_ONLINE, _OFFLINE = "online_access", "offline_access"


def introspected(token: str, *, client: Client, host: HostMatch) -> dict[str, Any]:
    """Return the members of the answer. The answer is the same for an invalid token and for a token that the client may not see."""
    found = _of_jwt(token, client, host) if token.count(".") == 2 else _of_row(token, client, host)
    return _INACTIVE if found is None else {"active": True, **{name: value for name, value in found.items() if value not in (None, "")}}


def _of_jwt(token: str, client: Client, host: HostMatch) -> dict[str, Any] | None:
    try:
        claims = verify_own_token(token, host=host)
    except TokenRefused:
        return None
    if not _may_see(claims, client) or not _is_subject_there(claims, host.tenant_id):
        return None
    return {
        "iss": claims.issuer,
        "sub": claims.subject,
        "aud": claims.audiences[0] if len(claims.audiences) == 1 else list(claims.audiences),
        "client_id": claims.client_id,
        "scope": " ".join(sorted(claims.scopes)),
        "token_type": token_type(claims.confirmation),
        "iat": claims.issued_at,
        "exp": claims.expires_at,
        "jti": claims.jti,
        "cnf": claims.confirmation,
        "act": claims.actor,
        # RFC 9396, 9.2. No filter by API is needed: all details are for the API of the token.
        DETAILS: list(claims.details) or None,
        "org_id": claims.organization_id,
    }


def _may_see(claims: AccessTokenClaims, client: Client) -> bool:
    own = client.settings.get("resource_server_identifier") if client.app_type == "resource_server" else None
    return claims.client_id == client.client_id or (bool(own) and own in claims.audiences)


def _is_subject_there(claims: AccessTokenClaims, tenant_id: str) -> bool:
    """Tell whether the user of a token exists and is not blocked. A token of a client itself has no user."""
    return claims.is_machine or User.objects.of(tenant_id).filter(user_id=claims.subject).exclude(blocked=True).exists()


def _of_row(token: str, client: Client, host: HostMatch) -> dict[str, Any] | None:
    row = find_opaque_token(tenant_id=host.tenant_id, token=token)
    if row is not None:
        return _opaque(row, client, host)
    rows = RefreshToken.objects.of(host.tenant_id).filter(token_checksum=digest_of(token), application=client)
    refresh = rows.select_related("user", "session").first()
    return None if refresh is None else _refresh(refresh, client, host)


def _opaque(row: AccessToken, client: Client, host: HostMatch) -> dict[str, Any] | None:
    if row.application_id != client.pk or row.user is None or row.user.blocked:
        return None
    described = _of_user(row.user, client, host, row.scope, row.confirmation)
    return {**described, "aud": f"{host.issuer}userinfo", "iat": _seconds(row.created), "exp": _seconds(row.expires)}


def _refresh(row: RefreshToken, client: Client, host: HostMatch) -> dict[str, Any] | None:
    now = timezone.now()
    scopes = row.scope.split()
    is_bound_to_session = _ONLINE in scopes and _OFFLINE not in scopes
    has_no_session = is_bound_to_session and (row.session is None or row.session.idle_expires_at <= now)
    if row.user.blocked or row.is_rotated or has_ended(row, policy_of(client), now=now) or has_no_session:
        return None
    ends = [end for end in (row.expires_at, row.idle_expires_at) if end is not None]
    described = _of_user(row.user, client, host, row.scope, row.confirmation)
    # RFC 7662, 2.2 defines `token_type` for access tokens only.
    described.pop("token_type")
    asked = asked_of(row.asked)
    details = list(asked.details) if asked is not None and asked.details else None
    times = {"iat": _seconds(row.created), "exp": _seconds(min(ends)) if ends else None}
    return {**described, "aud": row.audience, **times, DETAILS: details}


def _of_user(user: User, client: Client, host: HostMatch, scope: str, confirmation: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "iss": host.issuer,
        "sub": user.user_id,
        "client_id": client.client_id,
        "scope": scope,
        "token_type": token_type(confirmation),
        "cnf": confirmation,
    }


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())
