"""Secrets that stand for a session, a waiting request or a code: 256 random bits, of which only a digest is stored.

A plain digest is enough: nobody guesses 256 bits, so neither a key nor a slow hash adds anything.
"""

from __future__ import annotations

import hashlib
import secrets

_BYTES = 32


def new_secret() -> str:
    """Return 43 characters of base64url."""
    return secrets.token_urlsafe(_BYTES)


def digest_of(secret: str) -> str:
    """Return what is stored of a secret, and what its row is found by."""
    return hashlib.sha256(secret.encode()).hexdigest()
