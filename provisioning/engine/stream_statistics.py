"""Counts delivered and failed events of a stream per day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from foundation.database.statements import fetch_all

BUCKET_SECONDS = 86400
DAYS = 15
MOST_DAYS = 366
_DAY = timedelta(days=1)

# Deliveries are grouped by the day on which they were created, so each event counts once, even if its attempts end on another day.
_COUNTS = """
SELECT floor(extract(epoch FROM created_at - %(start)s) / %(bucket)s)::int,
    count(*) FILTER (WHERE state IN ('delivered', 'skipped', 'superseded')), count(*) FILTER (WHERE state = 'dead')
FROM provisioning_delivery
WHERE stream_id = %(stream)s AND created_at >= %(start)s AND created_at < %(end)s GROUP BY 1
"""


@dataclass(frozen=True)
class Statistics:
    """Daily counts in the order of `buckets`, the starts of the days in UTC."""

    date_from: datetime
    date_to: datetime
    buckets: list[datetime]
    delivered: list[int]
    failed: list[int]


def statistics(*, stream_id: str, date_from: datetime | None, date_to: datetime | None, now: datetime) -> Statistics:
    """Count events per day from `date_from` (default: 14 days ago) up to, but not including, `date_to`; at most 366 days.

    Waiting events are not counted. Raises `ValueError` if the window is empty or too long.
    """
    end = date_to or now
    start = datetime.combine((date_from or now - (DAYS - 1) * _DAY).astimezone(UTC).date(), time(), UTC)
    days = -(-(end - start) // _DAY)
    if not 0 < days <= MOST_DAYS:
        raise ValueError(f"The window must be 1 to {MOST_DAYS} days long.")
    counted = fetch_all(_COUNTS, {"stream": stream_id, "start": start, "end": end, "bucket": BUCKET_SECONDS})
    by_day = {day: (delivered, failed) for day, delivered, failed in counted}
    counts = [by_day.get(day, (0, 0)) for day in range(days)]
    buckets = [start + day * _DAY for day in range(days)]
    return Statistics(start, end, buckets, [delivered for delivered, _ in counts], [failed for _, failed in counts])
