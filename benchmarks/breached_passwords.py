"""Measures a search in the list of breached passwords, with a generated list that is deleted at the end.

Run with `.venv/bin/python -m benchmarks breached_passwords`, and add `-- --entries 100000000` for a longer list. Prints medians of the
rounds: the time of a search with the file in the page cache, and after the file was dropped from the cache. Also prints the memory used.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from array import array
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from random import Random

from identity.breaches.list_file import RANGES, RECORD_BYTES, BreachList, Facts

_ROUNDS, _CALLS, _COLD_CALLS = 9, 2000, 300


def write_random_list(path: Path, entries: int) -> None:
    """Write a list of random digests. Some ranges have one digest more than the other ranges."""
    random = Random(1)
    each, rest = divmod(entries, RANGES)
    counts = array("I", (each + (number < rest) for number in range(RANGES)))
    facts = Facts(entries, "random", 1, datetime.now(UTC))
    with path.open("wb") as file:
        file.write(facts.head())
        for count in counts:
            records = random.randbytes(count * RECORD_BYTES)
            file.write(b"".join(sorted(records[place : place + RECORD_BYTES] for place in range(0, len(records), RECORD_BYTES))))
        file.write(array("Q", accumulate(counts, initial=0)).tobytes())


def timed(breaches: BreachList, calls: int, *, path: Path | None = None) -> float:
    """Return the mean time of a search, in microseconds. With a path, drop this file from the page cache before each search."""
    spent = 0.0
    for number in range(calls):
        if path is not None:
            _drop_from_cache(path)
        began = time.perf_counter()
        breaches.holds(f"no such password {number} {began}")
        spent += time.perf_counter() - began
    return spent / calls * 1e6


def _drop_from_cache(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks breached_passwords", description=__doc__)
    parser.add_argument("--entries", type=int, default=20_000_000, help="Number of entries of the list.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="breaches") as place:
        path = Path(place) / "list"
        write_random_list(path, options.entries)
        _to_disk(path)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        breaches = BreachList(path)
        timed(breaches, _CALLS)
        warm = statistics.median(timed(breaches, _CALLS) for _ in range(_ROUNDS))
        cold = statistics.median(timed(breaches, _COLD_CALLS, path=path) for _ in range(_ROUNDS))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        size = path.stat().st_size
    print(f"{options.entries:,} entries, {size / 1e6:,.0f} MB, {options.entries * RECORD_BYTES / RANGES / 1e3:.1f} KB a range")
    print(f"search, file in the page cache      {warm:8.1f} µs")
    print(f"search, file read from the disk     {cold:8.1f} µs")
    print(f"memory of the process grew by       {grown:8,} KB")


def _to_disk(path: Path) -> None:
    # Only pages that are on the disk can be dropped from the cache.
    with path.open("rb") as file:
        os.fsync(file.fileno())


if __name__ == "__main__":
    main()
