"""Resource usage of processes: processor time and memory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SCHEDULED_TIME = 2


@dataclass(frozen=True)
class Memory:
    """Memory of a group of processes in bytes.

    For `proportional`, the kernel divides the size of each shared page by the number of processes that share the page.
    """

    resident: int
    proportional: int


def family(pid: int) -> list[int]:
    """Return a process and all of its descendants."""
    found = [pid]
    for parent in found:
        # A process or thread can end before its file is read; its children then have another parent.
        with suppress(FileNotFoundError, ProcessLookupError):
            for thread in Path(f"/proc/{parent}/task").iterdir():
                with suppress(FileNotFoundError, ProcessLookupError):
                    found += [int(child) for child in (thread / "children").read_text().split()]
    return found


def processor_seconds(pids: Iterable[int]) -> float:
    """Return the processor time of processes so far, user and system, including ended threads."""
    # The kernel's clock id for the processor time of a process, as in clock_getcpuclockid(3).
    return sum(time.clock_gettime_ns((~pid << 3) | _SCHEDULED_TIME) for pid in pids) / 1e9


def memory(pids: Iterable[int]) -> Memory:
    """Return the memory of processes."""
    totals = {"Rss:": 0, "Pss:": 0}
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            name, _, rest = line.partition(" ")
            if name in totals:
                totals[name] += int(rest.split()[0]) * 1024
    return Memory(resident=totals["Rss:"], proportional=totals["Pss:"])


class Meter:
    """Processor time and wall time of processes since the creation of this object."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)
        self._processor = processor_seconds(self._pids)
        self._wall = time.monotonic()

    def taken(self) -> tuple[float, float]:
        """Return processor seconds and wall seconds."""
        return processor_seconds(self._pids) - self._processor, time.monotonic() - self._wall


def load_average() -> float:
    return round(os.getloadavg()[0], 2)
