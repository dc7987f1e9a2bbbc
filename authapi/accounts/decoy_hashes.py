"""What is checked where there is no such user: a stored password of somebody else, whose outcome nobody looks at.

Stored passwords of other systems take another time than ours. So an unknown name costs what some real user of the connection
costs, always the same one for one name, and the time of an answer says nothing.
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
    """Return the stored form to check for a name that nobody has, or for somebody without a password."""
    sample = _samples.get(connection_id)
    if not sample:
        return decoy()
    # Keyed, so that nobody can tell which names share a stand-in.
    digest = hashlib.blake2b(identifier.encode("utf-8", "replace"), key=settings.SECRET_KEY.encode()[:64], digest_size=8).digest()
    return sample[int.from_bytes(digest, "big") % len(sample)]


def _load(connection_id: str) -> tuple[str, ...]:
    """Return stored forms of the newest and of the oldest users: imports come in bulk, at one end or the other."""
    stored = PasswordCredential.objects.filter(user__connection_id=connection_id)
    newest = list(stored.order_by("-user__created_at", "-user_id").values_list("pk", "password_hash")[:_SAMPLED])
    oldest = list(stored.order_by("user__created_at", "user_id").values_list("pk", "password_hash")[:_SAMPLED])
    return tuple({**dict(newest), **dict(oldest)}.values())


_samples: Remembered[str, tuple[str, ...]] = Remembered(_load, seconds=_REMEMBERED_SECONDS)
