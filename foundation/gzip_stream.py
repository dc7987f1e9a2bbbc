"""Builds one gzip file from pieces that different processes compress at different times (RFC 1951, RFC 1952). Pure."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

# The header has no file name and no time, so that an export of the same rows has the same bytes.
HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_RAW = -zlib.MAX_WBITS
_LEVEL = 6


@dataclass(frozen=True)
class Checksum:
    """The values in the trailer of the file: the CRC-32 of the whole text, and the length of the text modulo 2**32."""

    crc: int = 0
    size: int = 0

    def after(self, text: bytes) -> Checksum:
        return Checksum(zlib.crc32(text, self.crc), (self.size + len(text)) & 0xFFFFFFFF)


def piece(text: bytes) -> bytes:
    """Compress `text` so that another piece or the end can follow.

    The result ends on a byte boundary and refers to no earlier data.
    """
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
    return compressor.compress(text) + compressor.flush(zlib.Z_SYNC_FLUSH)


def end(checksum: Checksum) -> bytes:
    """Return the last block, which is empty, and the trailer."""
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW).flush(zlib.Z_FINISH) + struct.pack("<II", checksum.crc, checksum.size)
