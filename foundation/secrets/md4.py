"""MD4 (RFC 1320), only for checking imported hashes: OpenSSL 3 no longer offers it. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_MASK = 0xFFFFFFFF
_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
# Constant, word order and shifts of each of the three rounds.
_ROUNDS = (
    (0, tuple(range(16)), (3, 7, 11, 19)),
    (0x5A827999, (0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), (3, 5, 9, 13)),
    (0x6ED9EBA1, (0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15), (3, 9, 11, 15)),
)


def md4(message: bytes) -> bytes:
    """Return the digest of `message`."""
    state: tuple[int, ...] = _START
    for block in _blocks(message):
        state = _mixed(state, struct.unpack("<16I", block))
    return struct.pack("<4I", *state)


def _blocks(message: bytes) -> Iterator[bytes]:
    # RFC 1320, 3.1 and 3.2: a one bit, zeros, then the length in bits, in blocks of 64 bytes.
    padded = message + b"\x80" + b"\x00" * ((55 - len(message)) % 64) + struct.pack("<Q", len(message) * 8 & 0xFFFFFFFFFFFFFFFF)
    return (padded[start : start + 64] for start in range(0, len(padded), 64))


def _mixed(state: tuple[int, ...], words: tuple[int, ...]) -> tuple[int, ...]:
    a, b, c, d = state
    for number, (constant, order, shifts) in enumerate(_ROUNDS):
        for step, word in enumerate(order):
            value = (a + _chosen(number, b, c, d) + words[word] + constant) & _MASK
            shift = shifts[step % 4]
            a, b, c, d = d, (value << shift | value >> (32 - shift)) & _MASK, b, c
    return tuple((old + new) & _MASK for old, new in zip(state, (a, b, c, d), strict=True))


def _chosen(number: int, x: int, y: int, z: int) -> int:
    # RFC 1320, 3.4: the functions F, G and H.
    if number == 0:
        return x & y | ~x & z
    return x & y | x & z | y & z if number == 1 else x ^ y ^ z
