"""Places in a rate window that this process has taken ahead, a few at a time, so that most requests ask nobody.

A place is a number: the n-th request of its window. Redis gives each number once, to one process, so all processes together
never let more through than the limit. Places that were taken and not used are lost with their window, which is why leases
grow only while a process is busy and shrink as the window fills.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

# So many places at once at the most, and never more than this share of what is left.
_LARGEST = 16
_SHARE = 16
_OWNERS = 8192

# Given how many places are wanted, return the number of the last one.
Take = Callable[[int], int]


@dataclass(slots=True)
class _Lease:
    """What this process holds in one window. `size` is how many places it takes next."""

    window: int
    # Threads take from it without a lock: each end of a deque is safe.
    places: deque[int] = field(default_factory=deque)
    size: int = 1
    is_full: bool = False


class RateLeases:
    """The leases of this process, by whose rate it is. Safe in any thread."""

    def __init__(self) -> None:
        self._leases: dict[tuple[str, int], _Lease] = {}

    def held(self, owner: str, window: int, limit: int) -> int | None:
        """Return a place that is held here, `limit + 1` where the window is known to be full, or None: then `taken` must ask."""
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
        """Tell whether the window is known to be full here. Takes nothing."""
        lease = self._leases.get((owner, limit))
        return lease is not None and lease.window == window and lease.is_full and not lease.places

    def taken(self, owner: str, window: int, limit: int, take: Take) -> int:
        """Take places by asking `take`, keep all but the first of them, and return that one."""
        lease = self._of(owner, window, limit)
        amount = lease.size
        last = take(amount)
        first = last - amount + 1
        lease.places.extend(range(first + 1, last + 1))
        lease.size = max(1, min(_LARGEST, 2 * amount, (limit - last) // _SHARE))
        # Numbers only grow within a window.
        lease.is_full = lease.is_full or first > limit
        return first

    def _of(self, owner: str, window: int, limit: int) -> _Lease:
        lease = self._leases.get((owner, limit))
        if lease is None or lease.window != window:
            if len(self._leases) >= _OWNERS:
                self._leases.clear()
            lease = self._leases[owner, limit] = _Lease(window)
        return lease
