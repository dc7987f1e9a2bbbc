"""Sources of lists: a downloaded file or directory in the format of Pwned Passwords, or an interface that serves ranges.

Every source yields the records of the ranges in the order of the ranges. Input in another format is refused as a whole.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import BinaryIO

from foundation.outbound.outcomes import Answer, OutboundError
from foundation.outbound.retry_after import retry_after
from foundation.outbound.session import OutboundSession
from identity.breaches.list_file import RANGES, BreachList

# SHA-1 in hexadecimal digits, then the number of times that the password was seen. Files of ranges omit the first five digits.
_LINE = re.compile(rb"^([0-9A-F]{5})([0-9A-F]{12})[0-9A-F]{23}:([0-9]{1,12})\r?$", re.MULTILINE)
_RANGE_LINE = re.compile(rb"^([0-9A-F]{12})[0-9A-F]{23}:([0-9]{1,12})\r?$", re.MULTILINE)
_BLOCK_BYTES = 4 * 1024 * 1024
_LONGEST_LINE = 128
_NAMES = ("{:05X}.txt", "{:05X}", "{:05x}.txt", "{:05x}")
_DEADLINE_SECONDS = 30.0
_TRIES = 6
_LONGEST_PAUSE = 60.0
# The service also requests the ranges that changed in this time before the build of the present list. The reason is that clocks differ, and
# that a cache may have answered with an older range during the build.
_MARGIN = timedelta(days=1)


class SourceRefused(Exception):
    """The source has another format or does not answer; the message names the position."""


@dataclass(frozen=True)
class Taking:
    """Decides which passwords of a source are included: those that were seen `at_least` times or more.

    Refuses an empty range unless `may_lack_ranges` is true.
    """

    at_least: int = 1
    may_lack_ranges: bool = False


def packed_range(body: bytes, taking: Taking, *, name: str) -> bytes:
    """Return the records of a range from its lines, `SUFFIX:COUNT`. Raises `SourceRefused`.

    Entries with a count of 0 are padding, which hides the true size of the range.
    """
    lines = body.upper().strip()
    entries = _RANGE_LINE.findall(lines)
    if len(entries) != (lines.count(b"\n") + 1 if lines else 0):
        raise SourceRefused(f"The range {name} is not in the format of Pwned Passwords.")
    if not entries and not taking.may_lack_ranges:
        raise SourceRefused(f"The range {name} is empty.")
    return _packed(record for record, count in entries if int(count) >= taking.at_least)


def ranges_of_directory(directory: Path, taking: Taking, *, start: int) -> Iterator[bytes]:
    """Yield the ranges of a directory with one file per range, from the range with the number `start` on. Raises `SourceRefused`."""
    for number in range(start, RANGES):
        path = next((found for name in _NAMES if (found := directory / name.format(number)).is_file()), None)
        if path is None and not taking.may_lack_ranges:
            raise SourceRefused(f"The file of the range {number:05X} is missing. If this is intended, use --allow-missing.")
        yield b"" if path is None else packed_range(path.read_bytes(), taking, name=path.name)


def ranges_of_file(path: Path, taking: Taking, *, start: int) -> Iterator[bytes]:
    """Yield the ranges of one sorted file of lines `DIGEST:COUNT`, from the range with the number `start` on. Raises `SourceRefused`."""
    number, has_lines = start, False
    kept: list[bytes] = []
    with path.open("rb") as file:
        _seek_range(file, start)
        for digits, record, count in _entries(file, path.name):
            found = int(digits, 16)
            if found < start and not has_lines:
                # The binary search may stop one line before the range.
                continue
            if found < number:
                raise SourceRefused(f"{path.name} is not sorted: the range {found:05X} follows {number:05X}.")
            while number < found:
                yield _whole(kept, number, taking, has_lines=has_lines)
                number, kept, has_lines = number + 1, [], False
            has_lines = True
            if int(count) >= taking.at_least:
                kept.append(record)
    while number < RANGES:
        yield _whole(kept, number, taking, has_lines=has_lines)
        number, kept, has_lines = number + 1, [], False


@dataclass(frozen=True)
class RangeInterface:
    """An interface that answers `GET {base}{first five digits}` with the lines of a range.

    `present` is the existing list if it came from this interface; ranges that have not changed since the build of this list are copied from
    it.
    """

    session: OutboundSession
    base: str
    parallel: int
    present: BreachList | None = None
    pause: Callable[[float], None] = time.sleep

    def ranges(self, taking: Taking, *, start: int) -> Iterator[bytes]:
        """Yield the ranges from number `start`; fetches some ranges ahead. Raises `SourceRefused` for a range that fails repeatedly."""
        ahead: deque[Future[bytes]] = deque()
        with ThreadPoolExecutor(self.parallel, thread_name_prefix="ranges") as pool:
            try:
                for number in range(start, RANGES):
                    ahead.append(pool.submit(self._fetched, number, taking))
                    if len(ahead) >= 2 * self.parallel:
                        yield ahead.popleft().result()
                while ahead:
                    yield ahead.popleft().result()
            finally:
                for future in ahead:
                    future.cancel()

    def _fetched(self, number: int, taking: Taking) -> bytes:
        name, problem = f"{number:05X}", ""
        headers = {"User-Agent": "breached-passwords-refresh", "Accept-Encoding": "gzip", **self._conditions()}
        for attempt in range(_TRIES):
            try:
                answer = self.session.send(
                    "GET", f"{self.base}{name}", headers=headers, body=None, deadline=time.monotonic() + _DEADLINE_SECONDS
                )
            except OutboundError as error:
                problem, wait = str(error), 2.0**attempt
            else:
                if answer.status == 200:
                    return packed_range(answer.body, taking, name=name)
                if answer.status == 304 and self.present is not None:
                    return self.present.records_of(number)
                if answer.status != 429 and answer.status < 500:
                    raise SourceRefused(f"The server answered the range {name} with {answer.status}.")
                problem, wait = f"status {answer.status}", _wait_of(answer, attempt)
            if attempt + 1 < _TRIES:
                self.pause(min(wait, _LONGEST_PAUSE))
        raise SourceRefused(f"The range {name} cannot be fetched: {problem}. Run the command again to resume there.")

    def _conditions(self) -> dict[str, str]:
        if self.present is None:
            return {}
        return {"If-Modified-Since": format_datetime((self.present.facts.made_at - _MARGIN).astimezone(UTC), usegmt=True)}


def _wait_of(answer: Answer, attempt: int) -> float:
    return retry_after(answer.headers, datetime.now(UTC)) or 2.0**attempt


def _entries(file: BinaryIO, name: str) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield first digits, record and count of each line, from the current position in the file."""
    rest, at = b"", file.tell()
    while block := file.read(_BLOCK_BYTES):
        whole, mark, left = (rest + block).rpartition(b"\n")
        if not mark:
            whole, left = b"", left
        rest = left
        if len(rest) > _LONGEST_LINE:
            raise SourceRefused(f"{name} has a line that is not a digest, near byte {at:,}.")
        yield from _checked(whole, name, at)
        at = file.tell() - len(rest)
    yield from _checked(rest, name, at)


def _checked(text: bytes, name: str, at: int) -> list[tuple[bytes, bytes, bytes]]:
    lines = text.upper().rstrip()
    entries = _LINE.findall(lines)
    if len(entries) != (lines.count(b"\n") + 1 if lines else 0):
        raise SourceRefused(f"{name} has a line that is not DIGEST:COUNT, after byte {at:,}.")
    return entries


def _seek_range(file: BinaryIO, number: int) -> None:
    """Seek to the first line of a range, or of the next existing range, by a binary search in the sorted file."""
    low, high, wanted = 0, file.seek(0, 2), f"{number:05X}".encode()
    if not number:
        file.seek(0)
        return
    while low < high:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline(_LONGEST_LINE)
        line = file.readline(_LONGEST_LINE)
        if line and line[:5].upper() < wanted:
            low = middle + 1
        else:
            high = middle
    file.seek(low)
    if low:
        file.readline(_LONGEST_LINE)


def _whole(records: list[bytes], number: int, taking: Taking, *, has_lines: bool) -> bytes:
    if not has_lines and not taking.may_lack_ranges:
        raise SourceRefused(f"The range {number:05X} is missing: the file is incomplete. If this is intended, use --allow-missing.")
    return _packed(records)


def _packed(records: Iterable[bytes]) -> bytes:
    kept = sorted(set(records))
    return bytes.fromhex(b"".join(kept).decode()) if kept else b""
