"""Reserves places in a rate window in advance for this process, so that most requests need no call to Redis.

A place is the number of a request in its window. A request is refused if its number is above the limit. Redis gives each number to only one
process, so all processes together never exceed the limit. Reserved places that are not used are lost when the window ends. Therefore a
process reserves more places at once only while it is busy, and fewer places as the window fills.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

# A process reserves at most 16 places at once. If it reserves more than one, it reserves at most 1/16 of the places that remain in the
# window.
_LARGEST = 16
_SHARE = 16
_OWNERS = 8192

# A function that reserves the given number of places, and returns the last reserved place.
Take = Callable[[int], int]


@dataclass(slots=True)
class _Lease:
    """The reserved places of this process in one window. `size` is the size of the next reservation."""

    window: int
    # Threads take places without a lock, because operations on either end of a deque are atomic.
    places: deque[int] = field(default_factory=deque)
    size: int = 1
    is_full: bool = False


class RateLeases:
    """The leases of this process by owner of the rate. Thread-safe."""

    def __init__(self) -> None:
        self._leases: dict[tuple[str, int], _Lease] = {}

    def held(self, owner: str, window: int, limit: int) -> int | None:
        """Return a reserved place, or `limit + 1` if the window is known to be full. Return None if no place is reserved: then the caller
        must call `taken`."""
        lease = self._leases.get((owner, limit))
        if lease is None or lease.window != window:
            return None
        if lease.is_full:
            return limit + 1
        try:
            return lease.places.popleft()
        except IndexError:
            return None

    def is_full(self, owner: str, window: int, limit: int) -> bool:
        """Tell whether this process knows that the window is full. Takes no place."""
        lease = self._leases.get((owner, limit))
        return lease is not None and lease.window == window and lease.is_full and not lease.places

    def taken(self, owner: str, window: int, limit: int, take: Take) -> int:
        """Reserve places through `take`. Return the first place and keep the others."""
        lease = self._of(owner, window, limit)
        amount = lease.size
        last = take(amount)
        first = last - amount + 1
        lease.places.extend(range(first + 1, last + 1))
        lease.size = max(1, min(_LARGEST, 2 * amount, (limit - last) // _SHARE))
        # Within a window, the numbers from Redis only increase. So the window stays full after the first number above the limit.
        lease.is_full = lease.is_full or first > limit
        return first

    def _of(self, owner: str, window: int, limit: int) -> _Lease:
        lease = self._leases.get((owner, limit))
        if lease is None or lease.window != window:
            if len(self._leases) >= _OWNERS:
                self._leases.clear()
            lease = self._leases[owner, limit] = _Lease(window)
        return lease
