"""Keeps the newest frames of each watched tenant in memory. All streams of the tenant share the frames. One budget limits the memory of
all rings in a process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from events.stream.frames import Frame

RING_BYTES = 256 * 1024


class Ring:
    """The frames after position `after`, up to and including `end`, without a missing position."""

    __slots__ = ("_frames", "after", "end", "size")

    def __init__(self, position: int) -> None:
        self._frames: list[Frame] = []
        self.after = position
        self.end = position
        self.size = 0

    def append(self, frames: Sequence[Frame]) -> None:
        """Add the next frames, and drop the oldest frames if the ring exceeds its size."""
        self._frames.extend(frames)
        self.end = frames[-1].position
        self.size += sum(len(frame.data) for frame in frames)
        dropped = 0
        while self.size > RING_BYTES:
            self.size -= len(self._frames[dropped].data)
            self.after = self._frames[dropped].position
            dropped += 1
        del self._frames[:dropped]

    def covers(self, position: int) -> bool:
        """Tell whether the ring has all frames after the position."""
        return position >= self.after

    def frames_after(self, position: int) -> list[Frame]:
        """Return the frames after `position`, which the ring must cover. Positions are dense, so a subtraction gives the index."""
        return self._frames[max(position - self.after, 0) :]

    def frame_after(self, position: int) -> Frame | None:
        """Return the next frame after a position, or None if the ring does not contain the frame."""
        return self._frames[position - self.after] if self.after <= position < self.end and self._frames else None

    def clear(self) -> None:
        """Drop every frame; streams that still need these frames read pages."""
        self._frames.clear()
        self.after = self.end
        self.size = 0


class RingBudget:
    """Limits the bytes of all rings. Above the limit, it empties the rings that have not been filled for the longest time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rings: OrderedDict[Ring, int] = OrderedDict()
        self._total = 0

    @property
    def total(self) -> int:
        return self._total

    def filled(self, ring: Ring) -> None:
        """Count the bytes of a ring that has just been filled."""
        self._total += ring.size - self._rings.pop(ring, 0)
        self._rings[ring] = ring.size
        while self._total > self._limit and len(self._rings) > 1:
            oldest, size = self._rings.popitem(last=False)
            self._total -= size
            oldest.clear()

    def forget(self, ring: Ring) -> None:
        """Stop counting the bytes of a ring whose tenant is no longer watched."""
        self._total -= self._rings.pop(ring, 0)
