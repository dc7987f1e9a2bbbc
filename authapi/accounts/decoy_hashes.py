"""Password hashes of other users, checked when the requested user does not exist. The result of the check is ignored.

The time of a check depends on the hash: hashes of imported users differ from hashes of this service. So the check for an unknown identifier
uses the hash of another user of the same connection, and takes as long as the check for a real user. One identifier selects the same hash
each time. Otherwise repeated requests with one identifier would have different response times, which would reveal that the user does not
exist.
"""

from __future__ import annotations

import hashlib

from django.conf import settings

from foundation.memory.ttl_cache import Remembered
from foundation.secrets.hashing import decoy
from identity.models import PasswordCredential

_SAMPLED = 16
_REMEMBERED_SECONDS = 60.0


def stand_in(connection_id: str, identifier: str) -> str:
    """Return the password hash to check for an identifier without a user, or for a user without a password."""
    sample = _samples.get(connection_id)
    if not sample:
        return decoy()
    # The digest is keyed, so that an attacker cannot compute which identifiers share a password hash.
    digest = hashlib.blake2b(identifier.encode("utf-8", "replace"), key=settings.SECRET_KEY.encode()[:64], digest_size=8).digest()
    return sample[int.from_bytes(digest, "big") % len(sample)]


def _load(connection_id: str) -> tuple[str, ...]:
    """Return password hashes of the newest and the oldest users: imported users are usually among the newest or among the oldest."""
    stored = PasswordCredential.objects.filter(user__connection_id=connection_id)
    newest = list(stored.order_by("-user__created_at", "-user_id").values_list("pk", "password_hash")[:_SAMPLED])
    oldest = list(stored.order_by("user__created_at", "user_id").values_list("pk", "password_hash")[:_SAMPLED])
    return tuple({**dict(newest), **dict(oldest)}.values())


_samples: Remembered[str, tuple[str, ...]] = Remembered(_load, seconds=_REMEMBERED_SECONDS)
