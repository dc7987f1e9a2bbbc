"""Success rate and latency of deliveries, per hour and per stream. Each statement reads a bounded number of the newest deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from foundation.database.statements import fetch_all

HOURS = 24
HOUR = timedelta(hours=1)
# At most this number of deliveries of a stream are read, the newest first.
NEWEST = 5_000

# Columns of a statement that groups deliveries. The statement must provide the columns `state`, `created_at` and `settled_at`, and the
# parameter `since`. The time of a delivery is the time from its dispatch to its end. This time includes all attempts, the pauses between
# them, and holds.
MEASURES = """
count(*) FILTER (WHERE created_at >= %(since)s) AS number,
count(*) FILTER (WHERE created_at >= %(since)s AND state IN ('delivered', 'skipped', 'superseded')) AS accepted,
count(*) FILTER (WHERE created_at >= %(since)s AND state = 'dead') AS failed,
percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY greatest(extract(epoch FROM settled_at - created_at)::float8, 0))
    FILTER (WHERE created_at >= %(since)s AND state IN ('delivered', 'skipped')) AS seconds
"""
HOUR_NUMBER = "floor(extract(epoch FROM created_at - %(since)s) / 3600)::int"
# The unique index on stream and event returns the newest deliveries first, because a later event has a larger primary key.
_BY_HOUR = f"""
SELECT {HOUR_NUMBER} AS hour, {MEASURES} FROM (
    SELECT state, created_at, settled_at FROM provisioning_delivery WHERE stream_id = %(stream)s ORDER BY event DESC LIMIT %(newest)s
) newest GROUP BY 1
"""  # noqa: S608  (constants of this module)


@dataclass(frozen=True)
class Flow:
    """The deliveries of one hour or one stream.

    `accepted` also counts skipped and superseded events, because the destination does not need these events.
    """

    number: int = 0
    accepted: int = 0
    failed: int = 0
    # Median and 95th percentile of the seconds from the dispatch to the end of a delivery; None if no delivery was delivered or skipped.
    median: float | None = None
    most: float | None = None

    @property
    def success(self) -> float | None:
        """The percentage of ended deliveries that the destination accepted; None if no delivery has ended."""
        ended = self.accepted + self.failed
        return 100 * self.accepted / ended if ended else None


def flow_of(number: int, accepted: int, failed: int, seconds: list[float] | None) -> Flow:
    """Return the flow from the columns of `MEASURES` in one row."""
    median, most = seconds or (None, None)
    return Flow(number, accepted, failed, median, most)


def in_order(by_hour: dict[int, Flow]) -> list[Flow]:
    """Return one flow per hour, oldest first; an hour without deliveries gets an empty flow."""
    return [by_hour.get(hour, Flow()) for hour in range(HOURS)]


def flow_by_hour(stream_id: str, *, since: datetime) -> list[Flow]:
    """Return the flow of a stream in each of the `HOURS` hours from `since` on. A delivery belongs to the hour of its dispatch."""
    rows = fetch_all(_BY_HOUR, {"stream": stream_id, "since": since, "newest": NEWEST})
    return in_order({hour: flow_of(*measures) for hour, *measures in rows})


def hour_starts(now: datetime) -> list[datetime]:
    """Return the starts of the current hour and the hours before it, oldest first."""
    running = now.replace(minute=0, second=0, microsecond=0)
    return [running - HOUR * number for number in reversed(range(HOURS))]
