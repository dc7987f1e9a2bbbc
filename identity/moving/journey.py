"""The journey key of a move: it encrypts an archive and proves who made it. Operators send the key separately from the archive. Pure."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12
# The text of a new key has 43 characters: 256 random bits.
_SHORTEST = 43
_RECEIPT_BYTES = 10


class NotSealedSo(ValueError):
    """The bytes were not encrypted with this key for this place, or were changed."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def new_key() -> str:
    """Return a new journey key as text."""
    return secrets.token_urlsafe(32)


class Journey:
    """Encrypts and decrypts the parts of one archive. A part can be decrypted only for its own place in the archive."""

    def __init__(self, key: str, archive_id: str) -> None:
        """Raises `ValueError` for a text that cannot be a journey key."""
        text = key.strip()
        if len(text) < _SHORTEST or not text.isascii():
            raise ValueError("A journey key has at least 43 ASCII characters.")
        self._root = hmac.digest(text.encode(), f"journey:{archive_id}".encode(), "sha256")
        self._cipher = AESGCM(self._derived("encrypt"))
        self._archive_id = archive_id

    @property
    def check(self) -> str:
        """A value that is derived from the key. The archive contains it in clear, so a wrong key is distinguished from changed bytes."""
        return self._derived("check").hex()

    @property
    def receipt(self) -> str:
        """The text that `hand-over` prints and `open` demands: it proves that the tenant does not run at the source any more."""
        text = self._derived("handed over")[:_RECEIPT_BYTES].hex()
        return "-".join(text[start : start + 5] for start in range(0, len(text), 5))

    def seal(self, content: bytes, *, place: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, content, self._bound(place))

    def unseal(self, sealed: bytes, *, place: str) -> bytes:
        """Return the content. Raises `NotSealedSo`."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], self._bound(place))
        except (InvalidTag, ValueError) as error:
            raise NotSealedSo from error

    def fingerprint(self, text: str) -> str:
        """Return a keyed digest, by which both sides compare a value without showing it."""
        return hmac.digest(self._derived("compare"), text.encode(), "sha256").hex()

    def _derived(self, purpose: str) -> bytes:
        return hmac.digest(self._root, purpose.encode(), "sha256")

    def _bound(self, place: str) -> bytes:
        return f"{self._archive_id}:{place}".encode()


def receipt_digest(receipt: str) -> str:
    """Return the digest of a receipt. The target stores this digest."""
    plain = "".join(character for character in receipt.lower() if character.isalnum())
    return hashlib.sha256(plain.encode()).hexdigest()
