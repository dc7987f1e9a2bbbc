"""Taking back what was issued before its time: one access token, one family, or every refresh token of a user or a client.

A family is revoked with all its rows locked first, since a token that is being exchanged right now is about to have a successor.
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

# A row that was rotated or revoked within this time may have been so while we waited for its lock.
_LOCK_MARGIN = timedelta(minutes=1)


def revoke_own(token: str, *, client: Client, host: HostMatch) -> bool:
    """End a token of a client, of any kind. Return False for one that is not valid or belongs to another client.

    A refresh token ends with its whole family: RFC 7009, 2.1 wants the access tokens of the same grant ended as well.
    """
    return _revoke_jwt(token, client, host) if token.count(".") == 2 else _revoke_stored(token, client, host.tenant_id)


def revoke_access_token(*, tenant_id: str, jti: str, expires_at: datetime) -> None:
    """End one access token; doing it twice is harmless."""
    RevokedToken.objects.of(tenant_id).get_or_create(jti=jti, defaults={"tenant_id": tenant_id, "expires_at": expires_at})


@unit_of_work
def revoke_lineage(*, tenant_id: str, lineage: UUID) -> None:
    """End everything that came of one login at one client: refresh tokens, opaque tokens and JWTs, codes included. Twice is once."""
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
    """Revoke the refresh tokens that fit all that is given; return how many were alive. Access tokens run out by themselves.

    `user_id` is the key of the user's row, `client_id` and `ids` are those of the wire; an empty audience is the profile.
    """
    given = {"user_id": user_id, "application__client_id": client_id, "audience": audience, "wire_id__in": ids}
    narrowed = {name: value for name, value in given.items() if value is not None}
    if not narrowed:
        raise ValueError("Say which refresh tokens are to be revoked.")
    rows = RefreshToken.objects.of(tenant_id).filter(**narrowed)
    if ids is not None:
        # Ids change with every rotation; what is meant is the family.
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
    """Revoke the living ones of `rows`, those included that are born while we wait for the lock of their predecessor."""
    known: set[int] = set()
    while True:
        # A row that was alive when the statement began comes back as rotated, for its lock was waited for. Its successor
        # is seen by the next statement only, so ask until nothing new has come: by then every row is ours.
        recent = Q(revoked__isnull=True) | Q(revoked__gt=timezone.now() - _LOCK_MARGIN)
        locked = set(rows.filter(recent).order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
        if locked <= known:
            break
        known |= locked
    rows.filter(pk__in=known, sealed_until__isnull=False).update(sealed_successor="", sealed_until=None)
    return rows.filter(pk__in=known, revoked__isnull=True).update(revoked=timezone.now(), updated=timezone.now())
