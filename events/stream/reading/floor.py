"""The earliest cursor, and the comment at the start of a stream that warns the client about events that will soon be pruned. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from events.log.cursor import Cursor, CursorSealer
from events.log.reading import Bounds
from events.stream.frames import Frame, comment
from events.stream.refusals import Header

FLOOR = "X-Events-Floor"
FLOOR_TIME = "X-Events-Floor-Time"
# Warn about a cursor when the age of its next event has reached this share of the tenant's retention.
WARNING_SHARE = 0.9


def floor_headers(bounds: Bounds, sealer: CursorSealer) -> list[Header]:
    """Return headers with the earliest valid cursor and, if any event was pruned, with the earliest `from_timestamp`.

    This time is the first whole second after the last pruned event, so a stream that starts at this time misses no event.
    """
    headers = [(FLOOR.lower().encode(), sealer.seal(Cursor(bounds.epoch, bounds.floor)).encode())]
    if bounds.floor_recorded_at is not None:
        complete_from = bounds.floor_recorded_at.replace(microsecond=0) + timedelta(seconds=1)
        headers.append((FLOOR_TIME.lower().encode(), _stamp(complete_from).encode()))
    return headers


def expiry_notice(following: Frame | None, retention: timedelta, *, now: datetime) -> bytes:
    """Return a warning, as a comment, if the next event after the cursor will be pruned soon; otherwise return empty bytes.

    Soon means: before another tenth of the retention has passed. A cursor expires when the next event after it is pruned, so only the age
    of this event counts, and a cursor at the end of the log does not expire. Events recorded together are pruned together.
    """
    if following is None or now - following.recorded_at < retention * WARNING_SHARE:
        return b""
    dropped_at = following.recorded_at + retention
    return comment(f"warning=cursor_expiring next_event_at={_stamp(following.recorded_at)} dropped_from={_stamp(dropped_at)}")


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
