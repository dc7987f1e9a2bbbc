"""Sealed positions in a tenant's log: the `offset`, `from` and `Last-Event-ID` of clients. Pure.

Sealing is deterministic: with one key and in one epoch, an event always has the same offset. The layout before base64url: one byte with the
version and the length of the key id; the key id; the tag (16 bytes); the epoch and the position (together 12 bytes). Epoch and position are
encrypted with a pad that is derived from the tag. The tag covers the tenant, so a cursor of another tenant is invalid, like a forged
cursor.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest

_VERSION = 1
_TAG_BYTES = 16
_EPOCH_BYTES = 4
_PLACE_BYTES = 12
_ALPHABET = re.compile(r"[A-Za-z0-9_-]{1,64}")


class InvalidCursor(ValueError):
    """The cursor was not issued to this tenant."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


@dataclass(frozen=True, order=True, slots=True)
class Cursor:
    """A position in one tenant's log: the client has every event up to and including `position` of `epoch`."""

    epoch: int
    position: int


class CursorSealer:
    """Seals cursors of one tenant with the first key, which is the newest. Opens cursors that were sealed with any of the keys."""

    __slots__ = ("_keys", "_newest")

    def __init__(self, keys: Mapping[str, str], *, tenant_id: str) -> None:
        if not keys:
            raise ValueError("Sealing cursors needs at least one key.")
        self._keys = {key_id: _TenantKey(key_id, secret, tenant_id) for key_id, secret in keys.items()}
        self._newest = next(iter(self._keys.values()))

    def seal(self, cursor: Cursor) -> str:
        """Return the cursor as base64url text of at most 64 characters."""
        return self._newest.seal(cursor.epoch, cursor.position)

    def seal_at(self, epoch: int, position: int) -> str:
        """Return the sealed cursor of a position without making a `Cursor`, for loops over thousands of events."""
        return self._newest.seal(epoch, position)

    def open(self, text: str) -> Cursor:
        """Return the cursor in the sealed text. Raises `InvalidCursor` if the text was not sealed with these keys for this tenant."""
        raw = _decoded(text)
        version, key_id_length = raw[0] >> 4, raw[0] & 0x0F
        if version != _VERSION or len(raw) != 1 + key_id_length + _TAG_BYTES + _PLACE_BYTES:
            raise InvalidCursor
        key = self._keys.get(raw[1 : 1 + key_id_length].decode("latin-1"))
        if key is None:
            raise InvalidCursor
        return key.open(raw[1 + key_id_length :])


class _TenantKey:
    """The keys of one tenant for the tag and for the pad, derived from one secret, and stored as initialized hashers."""

    __slots__ = ("_pad", "_prefix", "_tag")

    def __init__(self, key_id: str, secret: str, tenant_id: str) -> None:
        if not 1 <= len(key_id) <= 8:
            raise ValueError("A cursor key id has 1 to 8 characters.")
        root = blake2b(secret.encode(), person=b"cursor-root").digest()
        self._tag = blake2b(tenant_id.encode() + b"\0", key=root, digest_size=_TAG_BYTES, person=b"cursor-tag")
        self._pad = blake2b(tenant_id.encode() + b"\0", key=root, digest_size=_PLACE_BYTES, person=b"cursor-pad")
        self._prefix = bytes([_VERSION << 4 | len(key_id)]) + key_id.encode()

    def seal(self, epoch: int, position: int) -> str:
        place = epoch.to_bytes(_EPOCH_BYTES) + position.to_bytes(_PLACE_BYTES - _EPOCH_BYTES)
        tag = self._tag_of(place)
        return urlsafe_b64encode(self._prefix + tag + self._masked(tag, place)).rstrip(b"=").decode()

    def open(self, sealed: bytes) -> Cursor:
        tag = sealed[:_TAG_BYTES]
        place = self._masked(tag, sealed[_TAG_BYTES:])
        if not compare_digest(self._tag_of(place), tag):
            raise InvalidCursor
        return Cursor(int.from_bytes(place[:_EPOCH_BYTES]), int.from_bytes(place[_EPOCH_BYTES:]))

    def _tag_of(self, place: bytes) -> bytes:
        hasher = self._tag.copy()
        hasher.update(self._prefix + place)
        return hasher.digest()

    def _masked(self, tag: bytes, place: bytes) -> bytes:
        hasher = self._pad.copy()
        hasher.update(tag)
        return (int.from_bytes(hasher.digest()) ^ int.from_bytes(place)).to_bytes(_PLACE_BYTES)


def _decoded(text: str) -> bytes:
    if _ALPHABET.fullmatch(text) is None:
        raise InvalidCursor
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError as error:
        raise InvalidCursor from error
    # The last base64 character has spare bits, so several texts decode to the same cursor. Only the text that `seal` returns is valid.
    if not raw or urlsafe_b64encode(raw).rstrip(b"=").decode() != text:
        raise InvalidCursor
    return raw
