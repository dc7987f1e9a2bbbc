"""Nonces of DPoP (RFC 9449, 8).

Nonces are not stored: a nonce is valid in its minute and the next minute, for one tenant and one generation. Each store of used proofs
(`authapi.possession.replays`) has its own generation. If another store replaces the store that recorded the use of a proof, the service
refuses nonces of the old generation, and proofs without a nonce. So the proof cannot be used again, although the new store has no record
of its use.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time

from django.conf import settings

HEADER = "DPoP-Nonce"
_MINUTE = 60


def current_nonce(tenant_id: str, generation: str) -> str:
    """Return the nonce of this minute, made with the newest digest key."""
    key_id = next(iter(settings.DIGEST_KEYS))
    return _nonce(key_id, tenant_id, generation, _minute())


def is_current(nonce: str, tenant_id: str, generation: str) -> bool:
    """Tell whether a nonce is of this minute or of the previous minute. Compares in constant time."""
    key_id, _, _ = nonce.partition(".")
    if key_id not in settings.DIGEST_KEYS or not nonce.isascii():
        return False
    minute = _minute()
    matches = [hmac.compare_digest(nonce, _nonce(key_id, tenant_id, generation, one)) for one in (minute, minute - 1)]
    return any(matches)


def _minute() -> int:
    return int(time.time()) // _MINUTE


def _nonce(key_id: str, tenant_id: str, generation: str, minute: int) -> str:
    text = f"dpop-nonce\x00{tenant_id}\x00{generation}\x00{minute}"
    digest = hmac.digest(settings.DIGEST_KEYS[key_id].encode(), text.encode(), hashlib.sha256)
    return f"{key_id}.{base64.urlsafe_b64encode(digest[:18]).decode()}"
