"""Encryption of stored secrets: AES-256-GCM. Each sealed text begins with the id of its key.

The associated data names the place where the secret is stored, and decryption fails if it gets other associated data. So a sealed text that
is copied to another row, tenant or name cannot be decrypted. Errors never contain the secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

_NONCE_BYTES = 12


class SecretUnreadable(RuntimeError):
    """A stored secret cannot be decrypted: its key is missing, or the encrypted text was moved or altered."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def seal(value: str, *, place: str) -> str:
    """Encrypt `value` for `place`, such as `tenant:table:row:name`; return `<key id>.<base64url>`."""
    key_id, _, sealed = seal_bytes(value.encode(), place=place).partition(b".")
    return f"{key_id.decode()}.{base64.urlsafe_b64encode(sealed).decode().rstrip('=')}"


def unseal(token: str, *, place: str) -> str:
    """Decrypt a text that `seal` returned for the same `place`. Raises `SecretUnreadable` for any other text."""
    key_id, _, text = token.partition(".")
    try:
        sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return unseal_bytes(key_id.encode() + b"." + sealed, place=place).decode()
    except ValueError as error:
        raise SecretUnreadable from error


def seal_bytes(value: bytes, *, place: str) -> bytes:
    """Encrypt large bytes for `place`; return `<key id>.` and the raw ciphertext."""
    key_id, key = _newest(settings.ENCRYPTION_KEYS, "ENCRYPTION_KEYS")
    nonce = os.urandom(_NONCE_BYTES)
    return key_id.encode() + b"." + nonce + AESGCM(_derived(key)).encrypt(nonce, value, place.encode())


def unseal_bytes(sealed: bytes, *, place: str) -> bytes:
    """Decrypt bytes that `seal_bytes` returned for the same `place`. Raises `SecretUnreadable` for any other bytes."""
    key_id, _, raw = sealed.partition(b".")
    key = settings.ENCRYPTION_KEYS.get(key_id.decode(errors="replace"))
    if key is None:
        raise SecretUnreadable(f"The encryption key {key_id.decode(errors='replace')[:8]!r} is not in ENCRYPTION_KEYS.")
    try:
        return AESGCM(_derived(key)).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], place.encode())
    except (InvalidTag, ValueError) as error:
        raise SecretUnreadable from error


def digest(value: str) -> str:
    """Return `<key id>.<hex>`, the keyed SHA-256 digest of a random secret, made with the newest digest key.

    Not for passwords, which use argon2. A slow hash would not make random secrets safer: an attacker cannot try values without the digest
    key.
    """
    key_id, key = _newest(settings.DIGEST_KEYS, "DIGEST_KEYS")
    return f"{key_id}.{_keyed(key, value)}"


def digests(value: str) -> list[str]:
    """Return the digests of `value` under every known key, the newest first: for rows that are found by a digest."""
    return [f"{key_id}.{_keyed(key, value)}" for key_id, key in settings.DIGEST_KEYS.items()]


def digest_matches(value: str, stored: str) -> bool:
    """Compare `value` with a stored digest in constant time; False if the key of the digest is no longer known."""
    key_id, _, expected = stored.partition(".")
    key = settings.DIGEST_KEYS.get(key_id, "")
    return hmac.compare_digest(_keyed(key or "absent", value), expected) and bool(key)


def _keyed(key: str, value: str) -> str:
    return hmac.digest(key.encode(), value.encode(), "sha256").hex()


def _derived(key: str) -> bytes:
    return hashlib.sha256(b"vault:" + key.encode()).digest()


def _newest(keys: dict[str, str], name: str) -> tuple[str, str]:
    if not keys:
        raise ImproperlyConfigured(f"{name} is empty: give at least one <id>:<32 or more random characters>.")
    return next(iter(keys.items()))
