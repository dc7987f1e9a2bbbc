"""The SQL statements of the start page of the admin.

Each statement uses an index or stops at a bound, so its cost does not depend on the size of a tenant. If `tenant` is None, the statement
reads the rows of all tenants, for platform operators. A result says whether its statement stopped at the bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from django.utils import timezone

from foundation.database.statements import fetch_all, rows_as
from provisioning.dead_letters.failure_kinds import failure_kinds
from provisioning.engine import not_found
from provisioning.engine.stream_flow import HOUR_NUMBER, MEASURES, Flow, flow_of, in_order

# Number of the newest rows that a statement reads.
NEWEST = 5_000
STREAMS_SHOWN = 200
KINDS_SHOWN = 5
# At most this number of waiting deliveries is counted for one stream.
MOST_WAITING = 1_000

# Positions are dense, so the number of events between two moments is the difference of their positions. One index lookup finds each
# position.
_POSITIONS = """
SELECT (SELECT position FROM events_head WHERE tenant_id = %(tenant)s) AS last, (
    SELECT l.position FROM events_logentry l WHERE l.tenant_id = %(tenant)s AND l.recorded_at >= hour.start
    ORDER BY l.recorded_at, l.position LIMIT 1) AS first
FROM unnest(%(starts)s::timestamptz[]) WITH ORDINALITY hour(start, number) ORDER BY number
"""
# There is no position across tenants. Row ids of events are sequential except for rolled back transactions, so their difference is an
# approximate number of events. A binary search finds the first id after a moment, with one lookup in the primary key per step.
_NUMBERS = """
WITH RECURSIVE ends AS (
    SELECT (SELECT id FROM events_event ORDER BY id LIMIT 1) AS low, (SELECT id FROM events_event ORDER BY id DESC LIMIT 1) + 1 AS high
),
halving(number, start, low, high) AS (
    SELECT hour.number, hour.start, ends.low, ends.high FROM unnest(%(starts)s::timestamptz[]) WITH ORDINALITY hour(start, number), ends
    UNION ALL
    SELECT h.number, h.start, CASE WHEN probe.time < h.start THEN probe.id + 1 ELSE h.low END,
        CASE WHEN probe.time < h.start THEN h.high ELSE middle.id END
    FROM halving h CROSS JOIN LATERAL (SELECT (h.low + h.high) / 2 AS id) middle
    CROSS JOIN LATERAL (SELECT e.id, e.time FROM events_event e WHERE e.id >= middle.id ORDER BY e.id LIMIT 1) probe
    WHERE h.low < h.high
)
SELECT (SELECT high - 1 FROM ends) AS last, low AS first FROM halving WHERE low >= high ORDER BY number
"""
_OUTCOMES = f"SELECT state, stream_id, hour, {MEASURES} FROM"
_NEWEST = f"SELECT state, stream_id, {HOUR_NUMBER} AS hour, created_at, settled_at FROM provisioning_delivery"  # noqa: S608
_OF_EACH = "newest GROUP BY GROUPING SETS ((state), (stream_id), (hour))"
_DELIVERIES = f"{_OUTCOMES} ({_NEWEST} ORDER BY id DESC LIMIT %(newest)s) {_OF_EACH}"
_DELIVERIES_OF_TENANT = f"""
{_OUTCOMES} ({_NEWEST} WHERE tenant_id = %(tenant)s ORDER BY tenant_id DESC, id DESC LIMIT %(newest)s) {_OF_EACH}
"""
_HOUR_NUMBERS = "SELECT floor(extract(epoch FROM created_at - %(since)s) / 3600)::int AS hour, count(*) AS number"
_FAILED_SIGN_INS = f"""
{_HOUR_NUMBERS} FROM (
    SELECT created_at FROM authapi_signin WHERE NOT is_success AND created_at >= %(since)s ORDER BY created_at DESC LIMIT %(newest)s
) newest GROUP BY 1
"""  # noqa: S608
_FAILED_SIGN_INS_OF_TENANT = f"""
{_HOUR_NUMBERS} FROM (
    SELECT created_at FROM authapi_signin WHERE NOT is_success AND tenant_id = %(tenant)s AND created_at >= %(since)s
    ORDER BY created_at DESC LIMIT %(newest)s
) newest GROUP BY 1
"""  # noqa: S608
_ALL_STREAMS = f"""
SELECT s.id AS stream_id, coalesce(nullif(s.name, ''), s.id) AS name, s.tenant_id, s.status, s.held_since, s.held_reason,
    greatest(h.position - s.position, 0) AS behind, coalesce(b.failures, 0) AS failures, g.staged_since,
    (SELECT count(*) FROM ({not_found.ROWS} LIMIT 1000) missed) AS not_found,
    (SELECT count(*) FROM (
        SELECT 1 FROM provisioning_delivery d WHERE d.stream_id = s.id AND d.state = 'todo' LIMIT {MOST_WAITING}
    ) waits) AS waiting
FROM events_eventstream s JOIN events_head h ON h.tenant_id = s.tenant_id
LEFT JOIN provisioning_breaker b ON b.stream_id = s.id LEFT JOIN provisioning_deletionguard g ON g.stream_id = s.id
"""  # noqa: S608  (a constant of another module)
_WORST_FIRST = "ORDER BY held_since IS NULL, status DESC, behind + waiting DESC, stream_id LIMIT %(streams)s"
_STREAMS = f"SELECT * FROM ({_ALL_STREAMS}) found {_WORST_FIRST}"  # noqa: S608  (constants)
_STREAMS_OF_TENANT = f"SELECT * FROM ({_ALL_STREAMS} WHERE s.tenant_id = %(tenant)s) found {_WORST_FIRST}"  # noqa: S608
# This query is like the query of the sweeper, but also includes held streams. It makes one index lookup for each enabled stream. In a held
# stream, a delivery whose next attempt is planned for later waits for the end of the hold, so it counts as due since the start of the hold.
_DUE = """
SELECT s.held_since IS NOT NULL AS is_held, s.id AS stream_id, coalesce(nullif(s.name, ''), s.id) AS stream_name,
    CASE WHEN due.not_before <= statement_timestamp() THEN due.not_before ELSE s.held_since END AS since
FROM events_eventstream s CROSS JOIN LATERAL (
    SELECT l.not_before FROM provisioning_lane l WHERE l.stream_id = s.id ORDER BY l.not_before LIMIT 1
) due WHERE s.status = 'enabled' AND (due.not_before <= statement_timestamp() OR s.held_since IS NOT NULL)
"""
_OLDEST_OF_EACH = "SELECT DISTINCT ON (is_held) since, stream_id, stream_name, is_held FROM"
_OLDEST_DUE = f"{_OLDEST_OF_EACH} ({_DUE}) due ORDER BY is_held, since"
_OLDEST_DUE_OF_TENANT = f"{_OLDEST_OF_EACH} ({_DUE} AND s.tenant_id = %(tenant)s) due ORDER BY is_held, since"
_KINDS_OF_ALL = """
WITH newest AS (
    SELECT id, stream_id, fingerprint, state, error_class, error_status, left(reason, 400) AS reason
    FROM provisioning_deadletter ORDER BY id DESC LIMIT %(newest)s
)
SELECT stream_id, fingerprint, count(*) AS open, (array_agg(error_class ORDER BY id DESC))[1] AS error_class,
    (array_agg(error_status ORDER BY id DESC))[1] AS error_status, (array_agg(reason ORDER BY id DESC))[1] AS reason
FROM newest WHERE state = 'open' GROUP BY stream_id, fingerprint ORDER BY count(*) DESC, max(id) DESC LIMIT %(kinds)s
"""


@dataclass(frozen=True)
class Hours:
    """Counts per hour, oldest first; the last hour is not over. `is_cut` is true if there are more rows than were counted."""

    starts: list[datetime]
    counts: list[int]
    is_cut: bool = False

    @property
    def total(self) -> int:
        return sum(self.counts)


@dataclass(frozen=True)
class Outcomes:
    """The deliveries of the last hours: their number for each state; success rates and delivery times for each stream and each hour."""

    by_state: dict[str, int]
    is_cut: bool
    by_stream: dict[str, Flow] = field(default_factory=dict)
    by_hour: list[Flow] = field(default_factory=list)


@dataclass(frozen=True)
class StreamState:
    """The state of one stream."""

    stream_id: str
    name: str
    tenant_id: str
    status: str
    held_since: datetime | None
    held_reason: str
    behind: int
    failures: int
    staged_since: datetime | None
    # Number of events whose user the server did not find, in the last 24 hours.
    not_found: int = 0
    # Number of dispatched events that are not delivered yet, at most `MOST_WAITING`.
    waiting: int = 0

    @property
    def is_enabled(self) -> bool:
        return self.status == "enabled"

    @property
    def lag(self) -> int:
        """The number of events that the destination does not have yet: not dispatched, or waiting in lanes."""
        return self.behind + self.waiting

    @property
    def is_cut(self) -> bool:
        return self.waiting >= MOST_WAITING

    @property
    def shown_lag(self) -> str:
        return f"{self.lag:,}{'+' if self.is_cut else ''}"


@dataclass(frozen=True)
class DueDelivery:
    """The delivery that has been due the longest, and its stream. If the stream is held, the delivery waits for the end of the hold."""

    since: datetime
    stream_id: str
    stream_name: str
    is_held: bool


@dataclass(frozen=True)
class _Place:
    """The position or row id of the last event, and of the first event that was recorded since the start of an hour."""

    last: int | None
    first: int | None


@dataclass(frozen=True)
class Kind:
    """A kind of failure on one stream, with its number of open dead letters."""

    stream_id: str
    fingerprint: str
    open: int
    error_class: str
    error_status: int | None
    reason: str

    @property
    def text(self) -> str:
        return f"{self.error_status or self.error_class}: {self.reason}"[:160]


def events_by_hour(tenant: str | None, starts: list[datetime]) -> Hours:
    """Return the number of recorded events per hour. For all tenants, the number is approximate."""
    places = rows_as(_Place, _POSITIONS if tenant else _NUMBERS, {"tenant": tenant, "starts": starts})
    if not places or places[0].last is None:
        return Hours(starts, [0] * len(starts))
    beyond = places[0].last + 1
    numbers = [beyond if place.first is None else place.first for place in places] + [beyond]
    return Hours(starts, [max(after - before, 0) for before, after in pairwise(numbers)])


def deliveries(tenant: str | None, since: datetime) -> Outcomes:
    """Count the deliveries since a moment, among the newest deliveries: by state, by stream and by hour."""
    rows = fetch_all(_DELIVERIES_OF_TENANT if tenant else _DELIVERIES, {"tenant": tenant, "since": since, "newest": NEWEST})
    by_state: dict[str, int] = {}
    by_stream: dict[str, Flow] = {}
    by_hour: dict[int, Flow] = {}
    for state, stream_id, hour, *measures in rows:
        flow = flow_of(*measures)
        if state is not None:
            by_state[state] = flow.number
        elif stream_id is not None:
            by_stream[stream_id] = flow
        else:
            by_hour[hour] = flow
    recent = {state: count for state, count in by_state.items() if count}
    return Outcomes(recent, sum(recent.values()) >= NEWEST, by_stream, in_order(by_hour))


def failed_sign_ins(tenant: str | None, starts: list[datetime]) -> Hours:
    """Return the number of failed logins per hour, among the newest failures."""
    values = {"tenant": tenant, "since": starts[0], "newest": NEWEST}
    by_hour: dict[int, int] = dict(fetch_all(_FAILED_SIGN_INS_OF_TENANT if tenant else _FAILED_SIGN_INS, values))
    counts = [by_hour.get(number, 0) for number in range(len(starts))]
    return Hours(starts, counts, is_cut=sum(counts) >= NEWEST)


def streams(tenant: str | None) -> list[StreamState]:
    """Return the event streams: held streams first, then the streams with the largest lag."""
    return rows_as(StreamState, _STREAMS_OF_TENANT if tenant else _STREAMS, {"tenant": tenant, "streams": STREAMS_SHOWN})


def oldest_due(tenant: str | None) -> list[DueDelivery]:
    """Return at most two deliveries: the oldest due delivery of streams that are not held, and the oldest due delivery of held streams."""
    return rows_as(DueDelivery, _OLDEST_DUE_OF_TENANT if tenant else _OLDEST_DUE, {"tenant": tenant})


def kinds_of_dead_letters(tenant: str | None) -> list[Kind]:
    """Return the kinds of failure with the most open dead letters, among the newest dead letters."""
    if tenant:
        found = failure_kinds(tenant, letters=NEWEST, kinds=KINDS_SHOWN).kinds
        return [Kind(kind.stream_id, kind.fingerprint, kind.open, kind.error_class, kind.error_status, kind.reason) for kind in found]
    return rows_as(Kind, _KINDS_OF_ALL, {"newest": NEWEST, "kinds": KINDS_SHOWN})


def age_of(moment: datetime) -> timedelta:
    """Return the time since a moment; zero for a moment in the future, which can occur because the clocks of two machines differ."""
    return max(timezone.now() - moment, timedelta(0))


def in_words(age: timedelta) -> str:
    """Return a duration in its two largest units, such as `3 h 5 min`."""
    minutes, seconds = divmod(int(age.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
