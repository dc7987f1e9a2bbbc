"""Accepted assertions, stored until they expire. The database decides which of two concurrent uses is the first."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from django.db import connection

from authapi.models import UsedAssertion

# The second of two concurrent inserts waits for the first and then returns no row.
_INSERT = """
INSERT INTO authapi_usedassertion (tenant_id, digest, expires_at) VALUES (%s, %s, %s)
ON CONFLICT (digest, tenant_id) DO NOTHING RETURNING id
"""


def use_once(*, tenant_id: str, client_id: str, jti: str, until: float) -> bool:
    """Record the use of an assertion. Return False if this process or another process has recorded a use before.

    Commits at once if no transaction is open, so that the assertion cannot be replayed even if the request fails later.
    """
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [tenant_id, _digest(client_id, jti), datetime.fromtimestamp(until, tz=UTC)])
        return cursor.fetchone() is not None


def is_used(*, tenant_id: str, client_id: str, jti: str) -> bool:
    """Tell whether `use_once` has recorded a use."""
    return UsedAssertion.objects.of(tenant_id).filter(digest=_digest(client_id, jti)).exists()


def _digest(client_id: str, jti: str) -> str:
    return hashlib.sha256(f"{client_id}\x00{jti}".encode()).hexdigest()
