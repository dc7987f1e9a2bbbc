"""Raises alerts once a minute, as part of the sweep. All times are times of the database's clock. A worker sends each alert at most once.

An alert is raised at most once per stream, kind and period. If two sweepers run, the unique constraint of `Alert` permits only one row.
A worker takes the row before it sends the message, so a crash can lose a message but never repeat it; the next period raises a new alert.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from foundation.database.statements import execute, fetch_all
from identity.stopped_tenants import STOPPED_TENANTS
from provisioning.engine import not_found

EVERY_SECONDS = 60.0
# Maximum number of alerts about new kinds of failure, per stream and period. If there are more new kinds, the alert about the number of
# open dead letters is enough.
_MOST_NEW_KINDS = 5
_MOST_COUNTED = 10_000
# A dead letter counts as new for this many seconds. Alerts are raised once a minute, so a sweep that pauses for less than this time misses
# no new kind.
_NEW_SECONDS = 3600.0

# Disabled streams are included, because their open dead letters still need a decision. Periods are aligned to the clock: an alert at the
# end of a period could be repeated at the start of the next period. Therefore no alert is raised while an alert of the same kind is less
# than one period old.
_RAISE = """
INSERT INTO provisioning_alert (stream_id, tenant_id, kind, fingerprint, period, facts, mailed_to, problem)
SELECT s.id, s.tenant_id, %(kind)s, found.fingerprint,
    to_timestamp(floor(extract(epoch FROM clock_timestamp()) / %(period)s) * %(period)s), found.facts, 0, ''
FROM events_eventstream s JOIN identity_tenant t ON t.id = s.tenant_id AND t.status = 'active'
"""
_UNLESS_RAISED = """
WHERE NOT EXISTS (
    SELECT 1 FROM provisioning_alert a WHERE a.stream_id = s.id AND a.kind = %(kind)s AND a.fingerprint = found.fingerprint
        AND a.created_at > now() - make_interval(secs => %(period)s))
ON CONFLICT DO NOTHING
"""
# A kind is new if its first dead letter, in any state, is at most `_NEW_SECONDS` old and was not redelivered. An index finds the newest
# dead letters and so their kinds. PostgreSQL uses the index only with `now()`, which is constant within a statement.
_NEW_FAILURE = """
SELECT newest.fingerprint, jsonb_build_object('class', first.error_class, 'status', first.error_status,
    'scim_type', first.error_scim_type, 'count', newest.letters) AS facts
FROM (SELECT n.fingerprint, count(*) AS letters FROM (
    SELECT l.fingerprint FROM provisioning_deadletter l
    WHERE l.stream_id = s.id AND l.state = 'open' AND l.created_at > now() - make_interval(secs => %(new)s)
    ORDER BY l.created_at DESC LIMIT %(most)s) n GROUP BY n.fingerprint) newest
CROSS JOIN LATERAL (
    SELECT o.created_at, o.redelivered_at, o.error_class, o.error_status, o.error_scim_type FROM provisioning_deadletter o
    WHERE o.tenant_id = s.tenant_id AND o.fingerprint = newest.fingerprint AND o.stream_id = s.id ORDER BY o.id LIMIT 1) first
WHERE first.redelivered_at IS NULL AND first.created_at > now() - make_interval(secs => %(new)s)
ORDER BY newest.letters DESC
LIMIT greatest(%(kinds)s - (SELECT count(*) FROM provisioning_alert b WHERE b.stream_id = s.id AND b.kind = %(kind)s
    AND b.created_at > now() - make_interval(secs => %(period)s)), 0)
"""
_MANY_OPEN = """
SELECT '' AS fingerprint, jsonb_build_object('count', counted.letters, 'limit', %(limit)s::int) AS facts
FROM (SELECT count(*) AS letters FROM (
    SELECT 1 FROM provisioning_deadletter l WHERE l.stream_id = s.id AND l.state = 'open' LIMIT %(most)s) open) counted
WHERE counted.letters >= %(limit)s
"""
_OLD_OPEN = """
SELECT '' AS fingerprint, jsonb_build_object('since', to_char(oldest.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) AS facts
FROM (SELECT l.created_at FROM provisioning_deadletter l WHERE l.stream_id = s.id AND l.state = 'open' ORDER BY l.created_at LIMIT 1) oldest
WHERE oldest.created_at < clock_timestamp() - make_interval(secs => %(age)s)
"""
_HELD = """
SELECT '' AS fingerprint, jsonb_build_object('since', to_char(s.held_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) AS facts
WHERE s.held_since IS NOT NULL
"""
# The statement compares the events that were skipped as "no such user" with all settled events of the last 24 hours. This detects a server
# whose filter finds no users: without the alert, deletions would be skipped without an error, and the accounts would remain. If the first
# count reaches its limit, the events are counted again without a limit, because a percentage needs the full number.
_NOT_FOUND = f"""
SELECT '' AS fingerprint, jsonb_build_object('count', counted.number, 'settled', settled.number, 'limit', %(percent)s::int) AS facts
FROM (SELECT count(*) AS number FROM ({not_found.ROWS} LIMIT %(most)s) missing) missed
CROSS JOIN LATERAL (SELECT count(*) AS number FROM provisioning_delivery d
    WHERE missed.number >= %(least)s AND d.stream_id = s.id AND d.created_at > now() - interval '1 day'
        AND d.state IN ('delivered', 'skipped')) settled
CROSS JOIN LATERAL (SELECT CASE WHEN missed.number < %(most)s THEN missed.number
    ELSE (SELECT count(*) FROM ({not_found.ROWS}) missing_in_all) END AS number) counted
WHERE missed.number >= %(least)s AND counted.number * 100 >= settled.number * %(percent)s
"""  # noqa: S608  (a constant of another module)
_RAISE_NEW_FAILURE = f"{_RAISE} CROSS JOIN LATERAL ({_NEW_FAILURE}) found {_UNLESS_RAISED}"
_RAISE_MANY_OPEN = f"{_RAISE} CROSS JOIN LATERAL ({_MANY_OPEN}) found {_UNLESS_RAISED}"
_RAISE_OLD_OPEN = f"{_RAISE} CROSS JOIN LATERAL ({_OLD_OPEN}) found {_UNLESS_RAISED}"
_RAISE_HELD = f"{_RAISE} CROSS JOIN LATERAL ({_HELD}) found {_UNLESS_RAISED}"
_RAISE_NOT_FOUND = f"{_RAISE} CROSS JOIN LATERAL ({_NOT_FOUND}) found {_UNLESS_RAISED}"
_UNSENT = (
    f"SELECT id FROM provisioning_alert WHERE taken_at IS NULL AND tenant_id NOT IN ({STOPPED_TENANTS})"  # noqa: S608  (a constant)
    " ORDER BY id LIMIT 100"
)


def raise_alerts() -> list[int]:
    """Raise the alerts that the settings enable; return the ids of alerts that no worker has taken."""
    for kind, statement, values in _asked_for():
        execute(statement, {"kind": kind, "period": settings.DEAD_LETTER_ALERT_PERIOD_SECONDS, **values})
    return [alert_id for (alert_id,) in fetch_all(_UNSENT)]


def _asked_for() -> list[tuple[str, str, dict[str, Any]]]:
    limit, age = settings.DEAD_LETTER_ALERT_OPEN, settings.DEAD_LETTER_ALERT_AGE_SECONDS
    new = {"new": min(_NEW_SECONDS, settings.DEAD_LETTER_ALERT_PERIOD_SECONDS), "kinds": _MOST_NEW_KINDS, "most": _MOST_COUNTED}
    not_found_values = {"percent": settings.NOT_FOUND_ALERT_PERCENT, "least": settings.NOT_FOUND_ALERT_USERS, "most": _MOST_COUNTED}
    every: list[tuple[bool, str, str, dict[str, Any]]] = [
        (settings.DEAD_LETTER_ALERT_FIRST, "new_failure", _RAISE_NEW_FAILURE, new),
        (limit > 0, "many_open", _RAISE_MANY_OPEN, {"limit": limit, "most": max(limit, _MOST_COUNTED)}),
        (age > 0, "old_open", _RAISE_OLD_OPEN, {"age": age}),
        (settings.DEAD_LETTER_ALERT_HELD, "held", _RAISE_HELD, {}),
        (settings.NOT_FOUND_ALERT_PERCENT > 0, "not_found", _RAISE_NOT_FOUND, not_found_values),
    ]
    return [(kind, statement, values) for is_asked, kind, statement, values in every if is_asked]
