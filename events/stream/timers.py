"""One timer wheel per process: heartbeats, deadlines and planned closes of all streams share a single task."""

from __future__ import annotations

import asyncio
from typing import Protocol

_TICK_SHARE_OF_HEARTBEAT = 15
_SHORTEST_TICK_SECONDS = 0.02
_LONGEST_TICK_SECONDS = 1.0


class Timed(Protocol):
    """A stream, or another object with timers."""

    slot: int

    def on_time(self, now: float) -> float:
        """Do the work that is due at `now`, and return the time of the next check."""


def tick_for(heartbeat_seconds: float) -> float:
    """Return the length of a tick in seconds: a fifteenth of the heartbeat interval, but at least 20 ms and at most one second."""
    return min(max(heartbeat_seconds / _TICK_SHARE_OF_HEARTBEAT, _SHORTEST_TICK_SECONDS), _LONGEST_TICK_SECONDS)


class Wheel:
    """A timer wheel, which divides time into ticks. A slot of the wheel contains the members that are due in one tick.

    The wheel checks each member when its slot is due, at most one tick late. All times are times of the event loop.
    """

    def __init__(self, tick_seconds: float) -> None:
        self._tick = tick_seconds
        self._slots: dict[int, set[Timed]] = {}
        self._turned_to = 0

    def put(self, member: Timed, due: float) -> None:
        """Put a member into the slot of the first tick after `due`."""
        member.slot = max(int(due / self._tick) + 1, self._turned_to + 1)
        self._slots.setdefault(member.slot, set()).add(member)

    def remove(self, member: Timed) -> None:
        """Remove a member; does nothing if the member is absent."""
        slot = self._slots.get(member.slot)
        if slot is not None:
            slot.discard(member)
            if not slot:
                del self._slots[member.slot]

    def turn(self, now: float) -> None:
        """Check every member whose slot is due."""
        last = int(now / self._tick)
        first = self._turned_to + 1
        self._turned_to = last
        # After a long pause, there are more ticks than slots with members. Then go through the slots instead of the ticks.
        due = range(first, last + 1) if last - first < len(self._slots) else sorted(slot for slot in self._slots if slot <= last)
        for number in due:
            for member in self._slots.pop(number, ()):
                self.put(member, member.on_time(now))

    async def run(self) -> None:
        """Check the due slots until this task is canceled."""
        loop = asyncio.get_running_loop()
        self._turned_to = int(loop.time() / self._tick)
        while True:
            self.turn(loop.time())
            await asyncio.sleep(self._tick)
