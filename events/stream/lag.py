"""Computes the lag of a stream behind its tenant's log, from data in the memory of the process, without a query. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of a stream: the last position of the log, the number of unread events, and the age of the oldest unread event.

    `ms` is the age in milliseconds. It is an estimate if the process does not know the recording time of the oldest unread event.
    """

    head: int
    events: int
    ms: int


def lag_of(*, position: int, head: int, oldest_at: float, now: float) -> Lag:
    """Return the lag of a stream at `position`. `oldest_at` is the recording time of the first event after `position`, in Unix seconds.

    A stream may have read beyond the head that its process knows; its lag is then zero. Clocks of two machines may disagree, so a negative
    age is reported as zero.
    """
    if head <= position:
        return Lag(position, 0, 0)
    return Lag(head, head - position, max(0, round((now - oldest_at) * 1000)))
