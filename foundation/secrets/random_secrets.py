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
    """Return the stored digest of a secret, by which its row is found."""
    return hashlib.sha256(secret.encode()).hexdigest()
