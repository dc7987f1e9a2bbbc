"""Taking back single access tokens, and dropping the record once they would have expired anyway."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from authapi.models import RevokedToken


def revoke_access_token(*, tenant_id: str, jti: str, expires_at: datetime) -> None:
    """End one access token; doing it twice is harmless."""
    RevokedToken.all_tenants.get_or_create(tenant_id=tenant_id, jti=jti, defaults={"expires_at": expires_at})


def prune_revoked_tokens() -> int:
    """Drop the records of tokens that have expired by themselves; return how many."""
    # A clock-bound job over every tenant: the rows say nothing any more.
    return RevokedToken.all_tenants.filter(expires_at__lt=timezone.now()).delete()[0]
