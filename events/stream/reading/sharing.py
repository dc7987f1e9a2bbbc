"""One write for every stream that stands at the same place, and sends that are begun without waking the stream's task.

Nearly all streams of a tenant wait at the end of its log. What a tail has just read is joined once for them, and each
connection takes it at once; a task is woken only where that does not work.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from events.stream.reading.ring import Ring

# A server keeps a few writes for a reader that has stopped; larger ones would cost memory and gain nothing that is felt.
WRITE_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Share:
    """What goes out to a stream at one place, in the three forms that are written; empty when its filter wants none of it."""

    message: dict[str, Any]
    body: bytes
    chunk: bytes
    size: int
    events: int
    read_to: datetime | None


class Batch:
    """What a tail has just appended to its ring, at `now`, a time of the event loop."""

    __slots__ = ("_last", "_last_position", "_last_types", "_ring", "_shares", "end", "now")

    def __init__(self, ring: Ring, now: float) -> None:
        self._ring = ring
        self._shares: dict[tuple[int, frozenset[str] | None], Share | None] = {}
        self._last_position = -1
        self._last_types: frozenset[str] | None = None
        self._last: Share | None = None
        self.end = ring.end
        self.now = now

    def share(self, position: int, types: frozenset[str] | None) -> Share | None:
        """Return everything after a position that passes the filter, or None when that is more than one write."""
        # Nearly all streams of a tenant stand at the place of the one before.
        if position == self._last_position and types is self._last_types:
            return self._last
        place = (position, types)
        if place not in self._shares:
            self._shares[place] = self._joined(position, types)
        self._last_position, self._last_types, self._last = position, types, self._shares[place]
        return self._last

    def _joined(self, position: int, types: frozenset[str] | None) -> Share | None:
        if not self._ring.covers(position):
            return None
        frames = self._ring.frames_after(position)
        wanted = [frame.data for frame in frames if types is None or frame.type in types]
        size = sum(map(len, wanted))
        if size > WRITE_BYTES:
            return None
        body = b"".join(wanted)
        message = {"type": "http.response.body", "body": body, "more_body": True}
        return Share(message, body, b"%x\r\n%b\r\n" % (size, body), size, len(wanted), frames[-1].recorded_at if frames else None)


class Begun:
    """A send that was begun outside the task that now waits for it."""

    __slots__ = ("_first", "_has_first", "_steps")

    def __init__(self, steps: Any, first: Any) -> None:
        self._steps = steps
        self._first = first
        self._has_first = True

    def __await__(self) -> Any:
        return self

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        """Give first what the send has already said it waits for, then go on with it."""
        if self._has_first:
            self._has_first = False
            return self._first
        return next(self._steps) if value is None else self._steps.send(value)

    def throw(self, error: BaseException) -> Any:
        """Let the send itself deal with a cancellation."""
        return self._steps.throw(error)

    def close(self) -> None:
        """Give the send up."""
        self._steps.close()


def begin(sending: Awaitable[None]) -> Begun | None:
    """Begin a send; return None when it is done at once, else what remains to be waited for. Raises what the send raises."""
    steps: Any = sending.__await__()
    try:
        first = next(steps)
    except StopIteration:
        return None
    return Begun(steps, first)
