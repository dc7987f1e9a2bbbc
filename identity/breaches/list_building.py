"""Builds a list: writes range by range into a working file, then replaces the old list in one step. A stopped run can be resumed.

During the build, these files are next to the list: `.part`, with the header and the records; `.ranges`, with the number of records of each
finished range; and `.lock`, which the building process locks. A record is on the disk before its range counts as finished.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

from foundation.durable_files import directory_to_disk, file_to_disk
from identity.breaches.list_file import HEAD_BYTES, RANGES, RECORD_BYTES, BreachList, Facts, ListUnreadable

# How many ranges are written between two points from which a stopped run can resume.
_RANGES_AT_ONCE = 2048
# Size of an integer in an array of this machine. Other machines may use another size, but they never read the working files.
_COUNT_BYTES = array("I").itemsize
# A new list that is smaller than this share of the old list is refused as truncated: published lists only grow.
_LEAST_SHARE = 0.9


class BuildRefused(Exception):
    """The list cannot be built; the message has the reason and the remedy."""


@dataclass(frozen=True)
class Plan:
    """The source of a list, and its threshold: passwords seen at least `at_least` times are included."""

    path: Path
    source: str
    at_least: int = 1

    def beside(self, ending: str) -> Path:
        """Return the path of a working file."""
        return self.path.with_name(f"{self.path.name}.{ending}")


@contextmanager
def building(plan: Plan, *, restarts: bool = False) -> Iterator[ListBuilder]:
    """Yield the builder of a list, which resumes an earlier, stopped run of the same plan. Raises `BuildRefused`."""
    plan.path.parent.mkdir(parents=True, exist_ok=True)
    with plan.beside("lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BuildRefused("Another process makes this list now.") from error
        if restarts:
            _clear(plan)
        builder = ListBuilder(plan)
        try:
            yield builder
        finally:
            builder.close()


class ListBuilder:
    """Accepts the records of one range after another, from the first range on; `count` is the number of records. Use it inside
    `building`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._counts, self._began_at = _kept_counts(plan)
        self._part: BinaryIO = _opened(plan.beside("part"))
        self._journal: BinaryIO = _opened(plan.beside("ranges"))
        self.count = sum(self._counts)
        self._cut_to_kept()
        self._unsafe = 0

    @property
    def done(self) -> int:
        """Number of ranges that are finished."""
        return len(self._counts)

    @property
    def began_at(self) -> datetime:
        """Time at which the first run began to build the list."""
        return self._began_at

    def add_all(self, ranges: Iterable[bytes], *, tell: Callable[[ListBuilder], None]) -> None:
        """Add the records of the next ranges. Calls `tell` each time that a part is safely on the disk. Raises the errors of the source."""
        try:
            for records in ranges:
                self._part.write(records)
                self._counts.append(len(records) // RECORD_BYTES)
                self.count += self._counts[-1]
                self._unsafe += 1
                if self._unsafe >= _RANGES_AT_ONCE:
                    self._make_safe()
                    tell(self)
        finally:
            self._make_safe()
        tell(self)

    def finish(self, *, accepts_smaller: bool = False) -> Facts:
        """Replace the old list with the new list, and return the facts of the new list.

        Readers see either the complete old list or the complete new list.

        Raises `BuildRefused` for a list that lacks ranges, is empty, or is much smaller than the existing list.
        """
        facts = Facts(self.count, self._plan.source, self._plan.at_least, self._began_at)
        if self.done != RANGES:
            raise BuildRefused(f"Only {self.done} of {RANGES} ranges are complete.")
        self._check_size(facts, accepts_smaller=accepts_smaller)
        table = array("Q", accumulate(self._counts, initial=0))
        if sys.byteorder == "big":
            table.byteswap()
        self._part.seek(0, os.SEEK_END)
        self._part.write(table.tobytes())
        # The header is written last, because a file without its header is not a list.
        self._part.seek(0)
        self._part.write(facts.head())
        file_to_disk(self._part)
        BreachList(self._plan.beside("part"))
        self._plan.beside("part").replace(self._plan.path)
        directory_to_disk(self._plan.path.parent)
        self._plan.beside("ranges").unlink()
        return facts

    def close(self) -> None:
        """Close the working files."""
        self._part.close()
        self._journal.close()

    def _check_size(self, facts: Facts, *, accepts_smaller: bool) -> None:
        if not facts.count:
            raise BuildRefused("The source contains no password.")
        present = present_list(self._plan.path)
        if present is None or accepts_smaller or present.facts.at_least != facts.at_least:
            return
        if facts.count < present.facts.count * _LEAST_SHARE:
            text = f"The new list has {facts.count:,} passwords, the existing list has {present.facts.count:,}. Nothing was replaced."
            raise BuildRefused(f"{text} If this is correct, run the command again with --accept-smaller.")

    def _cut_to_kept(self) -> None:
        """Cut the working files to the ranges that both files contain. Starts new files if there are none."""
        size = os.fstat(self._part.fileno()).st_size
        while self._counts and HEAD_BYTES + RECORD_BYTES * self.count > size:
            del self._counts[-_RANGES_AT_ONCE:]
            self.count = sum(self._counts)
        self._part.truncate(HEAD_BYTES + RECORD_BYTES * self.count)
        self._part.seek(0, os.SEEK_END)
        head = _journal_head(self._plan, self._began_at)
        self._journal.seek(0)
        self._journal.write(head + self._counts.tobytes())
        self._journal.truncate()
        file_to_disk(self._journal)

    def _make_safe(self) -> None:
        if self._unsafe:
            file_to_disk(self._part)
            self._journal.write(self._counts[-self._unsafe :].tobytes())
            file_to_disk(self._journal)
            self._unsafe = 0


def present_list(path: Path) -> BreachList | None:
    """Return the list at a path, or None if no list can be read there."""
    try:
        return BreachList(path)
    except (OSError, ListUnreadable):
        return None


def _journal_head(plan: Plan, began_at: datetime) -> bytes:
    return json.dumps({"source": plan.source, "at_least": plan.at_least, "began_at": began_at.isoformat()}).encode() + b"\n"


def _kept_counts(plan: Plan) -> tuple[array[int], datetime]:
    """Return the counts of the ranges that an earlier run of this plan has finished, and the time at which that run began."""
    counts = array("I")
    began_at = datetime.now(UTC)
    if not plan.beside("ranges").exists():
        return counts, began_at
    head, _, packed = plan.beside("ranges").read_bytes().partition(b"\n")
    try:
        stated = json.loads(head)
        began_at = datetime.fromisoformat(stated["began_at"])
    except (ValueError, KeyError, TypeError) as error:
        raise BuildRefused("The working files of an earlier run are damaged: run the command again with --restart.") from error
    if (stated.get("source"), stated.get("at_least")) != (plan.source, plan.at_least):
        raise BuildRefused(
            "An earlier run with another source or another --at-least was stopped. Continue with those values, or use --restart."
        )
    counts.frombytes(packed[: min(len(packed) // _COUNT_BYTES, RANGES) * _COUNT_BYTES])
    return counts, began_at


def _clear(plan: Plan) -> None:
    for ending in ("part", "ranges"):
        plan.beside(ending).unlink(missing_ok=True)


def _opened(path: Path) -> BinaryIO:
    # Open the file without truncation, because a resumed run keeps the content.
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+b")
