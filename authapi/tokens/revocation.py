"""Taking back what was issued before its time."""

from __future__ import annotations

from datetime import datetime

from authapi.models import RevokedToken


def revoke_access_token(*, tenant_id: str, jti: str, expires_at: datetime) -> None:
    """End one access token; doing it twice is harmless."""
    RevokedToken.objects.of(tenant_id).get_or_create(jti=jti, defaults={"tenant_id": tenant_id, "expires_at": expires_at})
