"""Secrets of a session, a waiting request or a code: 256 random bits, of which only a digest is stored.

A plain digest is enough: 256 bits cannot be guessed, so neither a key nor a slow hash adds security.
"""

from __future__ import annotations

import hashlib
import secrets

_BYTES = 32


def new_secret() -> str:
    """Return 43 characters of base64url."""
    return secrets.token_urlsafe(_BYTES)


def digest_of(secret: str) -> str:
    """Return the digest of a secret. The row stores the digest, and is found by the digest."""
    return hashlib.sha256(secret.encode()).hexdigest()
