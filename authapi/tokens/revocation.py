"""Revokes tokens: one access token, one lineage, or every refresh token of a user or of a client.

All refresh tokens of a lineage are locked before the lineage is revoked, because a concurrent exchange may be about to insert a successor.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from authapi.models import AccessToken, AuthorizationCode, CibaRequest, Client, DeviceGrant, RefreshToken, RevokedToken
from authapi.tokens.claims import lineage_key
from authapi.tokens.token_state import token_states
from authapi.tokens.verifying import TokenRefused, verify_own_token
from foundation.database.transactions import unit_of_work
from foundation.secrets.random_secrets import digest_of
from identity.hosts import HostMatch

# A row that was rotated or revoked within this time may have changed while this transaction waited for its lock.
_LOCK_MARGIN = timedelta(minutes=1)


def revoke_own(token: str, *, client: Client, host: HostMatch) -> bool:
    """Revoke a client's token of any kind. Return False for a token that is invalid or belongs to another client.

    If this is a refresh token, its whole lineage is revoked: RFC 7009, 2.1 recommends to revoke the access tokens of the same
    authorization, too.
    """
    return _revoke_jwt(token, client, host) if token.count(".") == 2 else _revoke_stored(token, client, host.tenant_id)


def revoke_access_token(*, tenant_id: str, jti: str, expires_at: datetime) -> None:
    """Revoke one access token. A repeated call has no further effect."""
    RevokedToken.objects.of(tenant_id).get_or_create(jti=jti, defaults={"tenant_id": tenant_id, "expires_at": expires_at})


@unit_of_work
def revoke_lineage(*, tenant_id: str, lineage: UUID) -> None:
    """Revoke all codes, refresh tokens, opaque tokens and JWTs of one login at one client. A repeated call has no further effect."""
    family = RefreshToken.objects.of(tenant_id).filter(lineage=lineage)
    _revoke_locked(family)
    AccessToken.objects.of(tenant_id).filter(lineage=lineage).delete()
    codes = AuthorizationCode.objects.of(tenant_id).filter(lineage=lineage)
    codes.filter(used_at__isnull=True).update(used_at=timezone.now())
    devices = DeviceGrant.objects.of(tenant_id).filter(lineage=lineage)
    requests = CibaRequest.objects.of(tenant_id).filter(lineage=lineage)
    ends = [rows.aggregate(last=Max("issued_until"))["last"] for rows in (family, codes, devices, requests)]
    until = max((end for end in ends if end is not None), default=None)
    if until is not None and until > timezone.now():
        RevokedToken.objects.of(tenant_id).update_or_create(
            jti=lineage_key(lineage), defaults={"tenant_id": tenant_id, "expires_at": until}
        )


@unit_of_work
def revoke_refresh_tokens(
    *, tenant_id: str, user_id: int | None = None, client_id: str | None = None, audience: str | None = None, ids: list[str] | None = None
) -> int:
    """Revoke the refresh tokens that match all given arguments; return how many were valid. Access tokens stay valid until they expire.

    `user_id` is the primary key of the user. `client_id` and `ids` are the ids on the wire. An empty `audience` selects the
    tokens that were issued without an API, for the user's profile.
    """
    given = {"user_id": user_id, "application__client_id": client_id, "audience": audience, "wire_id__in": ids}
    narrowed = {name: value for name, value in given.items() if value is not None}
    if not narrowed:
        raise ValueError("Name the refresh tokens to revoke by at least one argument.")
    rows = RefreshToken.objects.of(tenant_id).filter(**narrowed)
    if ids is not None:
        # Since the ids were read, a rotation may have replaced a token by a token with a new id. So revoke the whole lineage.
        lineages = list(rows.values_list("lineage", flat=True))
        rows = RefreshToken.objects.of(tenant_id).filter(lineage__in=lineages)
    return _revoke_locked(rows)


def _revoke_jwt(token: str, client: Client, host: HostMatch) -> bool:
    try:
        claims = verify_own_token(token, host=host)
    except TokenRefused:
        return False
    if claims.client_id != client.client_id:
        return False
    expires_at = datetime.fromtimestamp(claims.expires_at, tz=UTC)
    revoke_access_token(tenant_id=host.tenant_id, jti=claims.jti, expires_at=expires_at)
    token_states.forget((host.tenant_id, claims.client_id, claims.jti))
    return True


def _revoke_stored(token: str, client: Client, tenant_id: str) -> bool:
    own = {"token_checksum": digest_of(token), "application": client}
    row = RefreshToken.objects.of(tenant_id).filter(**own).first()
    if row is not None:
        revoke_lineage(tenant_id=tenant_id, lineage=row.lineage)
        return True
    deleted_count, _ = AccessToken.objects.of(tenant_id).filter(**own).delete()
    return deleted_count > 0


def _revoke_locked(rows: QuerySet[RefreshToken]) -> int:
    """Revoke the valid tokens of `rows`, including successors that are inserted while this transaction waits for a lock."""
    known: set[int] = set()
    while True:
        # If a concurrent exchange holds the lock of a row, the statement waits and then returns the rotated row, but not its successor.
        # Only the next statement sees the successor. Repeat until no new row appears: then this transaction has locked every row.
        recent = Q(revoked__isnull=True) | Q(revoked__gt=timezone.now() - _LOCK_MARGIN)
        locked = set(rows.filter(recent).order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
        if locked <= known:
            break
        known |= locked
    rows.filter(pk__in=known, sealed_until__isnull=False).update(sealed_successor="", sealed_until=None)
    return rows.filter(pk__in=known, revoked__isnull=True).update(revoked=timezone.now(), updated=timezone.now())
