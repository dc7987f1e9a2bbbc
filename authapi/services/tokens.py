"""Taking back single access tokens, and dropping what has expired by itself."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from authapi.client_auth.replays import prune_used_assertions
from authapi.models import AuthorizationCode, DeviceGrant, RevokedToken


def revoke_access_token(*, tenant_id: str, jti: str, expires_at: datetime) -> None:
    """End one access token; doing it twice is harmless."""
    RevokedToken.all_tenants.get_or_create(tenant_id=tenant_id, jti=jti, defaults={"expires_at": expires_at})


def prune_expired() -> int:
    """Drop codes, device grants, and records of revoked tokens and used assertions whose time is over; return how many rows went."""
    # Bound to the clock and not to a tenant: these rows say nothing any more.
    now = timezone.now()
    revoked = RevokedToken.all_tenants.filter(expires_at__lt=now).delete()[0]
    codes = AuthorizationCode.all_tenants.filter(expires__lt=now).delete()[0]
    return revoked + codes + prune_used_assertions() + DeviceGrant.all_tenants.filter(expires__lt=now).delete()[0]
