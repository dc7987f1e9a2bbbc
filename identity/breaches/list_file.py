"""The list of breached passwords: one local file of truncated SHA-1 digests, and the search in it.

Layout, all integers little-endian (docs/adr/0117):

1. A header of 4096 bytes: `MAGIC`, then JSON with the facts of the list, padded with spaces.
2. Records of 6 bytes: the 48 bits of each digest that follow its first 20 bits, sorted within their range. A range is the set of digests
   with the same first 20 bits, as in the k-anonymity interface of the source.
3. A table of 2^20 + 1 integers of 8 bytes: the number of the first record of each range, and the number of all records.

A search reads 16 bytes of the table and the records of one range, about 5 KB in a list of 900 million entries. The file is read with
`pread` and never mapped: if a mapped file is truncated, the process is killed; `pread` only returns fewer bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import weakref
from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

MAGIC = b"breached-passwords 1\n"
HEAD_BYTES = 4096
RANGES = 1 << 20
RECORD_BYTES = 6
_ENTRY = struct.Struct("<QQ")
ENTRY_BYTES = 8
TABLE_BYTES = (RANGES + 1) * ENTRY_BYTES
# The maximum number of records in one range: a damaged table must not make a process read gigabytes.
_MOST_IN_RANGE = 1 << 20


class ListUnreadable(Exception):
    """The file is not a list of breached passwords, or it is damaged."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


@dataclass(frozen=True)
class Facts:
    """The facts in the header of a list. The list has the passwords seen at least `at_least` times; `made_at` is the start of the build."""

    count: int
    source: str
    at_least: int
    made_at: datetime

    def head(self) -> bytes:
        """Return the header of the file. Raises `ValueError` if the name of the source does not fit."""
        text = json.dumps({"count": self.count, "source": self.source, "at_least": self.at_least, "made_at": self.made_at.isoformat()})
        head = MAGIC + text.encode()
        if len(head) > HEAD_BYTES:
            raise ValueError("The name of the source is too long.")
        return head.ljust(HEAD_BYTES)

    @classmethod
    def of_head(cls, head: bytes) -> Facts:
        """Return the facts in a header. Raises `ListUnreadable`."""
        if len(head) != HEAD_BYTES or not head.startswith(MAGIC):
            raise ListUnreadable
        try:
            stated: dict[str, Any] = json.loads(head[len(MAGIC) :])
            made_at = datetime.fromisoformat(stated["made_at"])
            return cls(int(stated["count"]), str(stated["source"]), int(stated["at_least"]), made_at)
        except (ValueError, KeyError, TypeError) as error:
            raise ListUnreadable from error


class BreachList:
    """An open list. If another file replaces it, searches in the old file can finish; the old file is closed after the last of them."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises `ListUnreadable`, and `OSError` if the file cannot be opened."""
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)
        stat = os.fstat(self._file)
        self.identity = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
        self.facts = Facts.of_head(os.pread(self._file, HEAD_BYTES, 0))
        self._table = HEAD_BYTES + RECORD_BYTES * self.facts.count
        if self.facts.count < 0 or stat.st_size != self._table + TABLE_BYTES or self._records_until(RANGES) != self.facts.count:
            raise ListUnreadable

    def holds(self, password: str) -> bool:
        """Tell whether the list contains this password. Raises `ListUnreadable`, and `OSError` if the disk fails.

        With 900 million entries, it wrongly returns True for about one in 3 * 10^11 passwords that are in no breach.
        """
        number, record = truncated_digest(password)
        records = self.records_of(number)
        count = len(records) // RECORD_BYTES
        place = bisect_left(range(count), record, key=lambda n: records[n * RECORD_BYTES : (n + 1) * RECORD_BYTES])
        return records[place * RECORD_BYTES : (place + 1) * RECORD_BYTES] == record

    def records_of(self, number: int) -> bytes:
        """Return the records of a range, concatenated. Raises `ListUnreadable`."""
        first, end = self._bounds(number)
        if not 0 <= first <= end <= self.facts.count or end - first > _MOST_IN_RANGE:
            raise ListUnreadable
        length = (end - first) * RECORD_BYTES
        found = os.pread(self._file, length, HEAD_BYTES + first * RECORD_BYTES)
        if len(found) != length:
            raise ListUnreadable
        return found

    def _bounds(self, number: int) -> tuple[int, int]:
        found = os.pread(self._file, _ENTRY.size, self._table + number * ENTRY_BYTES)
        if len(found) != _ENTRY.size:
            raise ListUnreadable
        first, end = _ENTRY.unpack(found)
        return int(first), int(end)

    def _records_until(self, number: int) -> int:
        return self._bounds(number - 1)[1]


def truncated_digest(password: str) -> tuple[int, bytes]:
    """Return the number of a password's range, and its record in that range."""
    # The published lists use SHA-1 of UTF-8. The digest protects no secret: the list is public.
    digest = hashlib.sha1(password.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return int(digest[:5], 16), bytes.fromhex(digest[5:17])
