"""Dead letters by kind of failure: the newest dead letters of a tenant, counted by stream and fingerprint."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foundation.database.statements import rows_as

# Limits per tenant: a query counts only this many unsettled dead letters, newest first, and returns at most this many kinds.
LETTERS_LOOKED_AT = 50_000
MOST_KINDS = 200

# `looked_at` is an index-only scan of `provisioning_dead_unsettled`. In addition, the query reads one dead letter per kind.
_KINDS = """
WITH looked_at AS (
    SELECT id, stream_id, fingerprint, state, key, created_at FROM provisioning_deadletter
    WHERE tenant_id = %(tenant)s AND state IN ('open', 'acknowledged', 'ignored') ORDER BY id DESC LIMIT %(letters)s
),
kinds AS (
    SELECT stream_id, fingerprint, max(id) AS newest, min(created_at) AS first_at, max(created_at) AS last_at,
        count(DISTINCT key) AS users, count(*) FILTER (WHERE state = 'open') AS opened,
        count(*) FILTER (WHERE state = 'acknowledged') AS acknowledged, count(*) FILTER (WHERE state = 'ignored') AS ignored,
        sum(count(*)) OVER () AS letters
    FROM looked_at GROUP BY stream_id, fingerprint ORDER BY max(id) DESC LIMIT %(kinds)s
)
SELECT k.stream_id, coalesce(s.name, '') AS stream_name, k.fingerprint, k.opened AS open, k.acknowledged, k.ignored, k.users,
    k.first_at, k.last_at, l.error_class, l.error_status, l.error_scim_type, l.reason, i.until AS ignored_until,
    s.held_since IS NOT NULL AS is_held, k.letters AS letters_looked_at
FROM kinds k JOIN provisioning_deadletter l ON l.id = k.newest LEFT JOIN events_eventstream s ON s.id = k.stream_id
LEFT JOIN provisioning_ignoredkind i
    ON i.stream_id = k.stream_id AND i.fingerprint = k.fingerprint AND i.until > clock_timestamp()
ORDER BY k.opened DESC, k.newest DESC
"""


@dataclass(frozen=True)
class FailureKind:
    """One kind of failure on one stream: counts by state, affected users, times, and the newest error."""

    stream_id: str
    stream_name: str
    fingerprint: str
    open: int
    acknowledged: int
    ignored: int
    users: int
    first_at: datetime
    last_at: datetime
    error_class: str
    error_status: int | None
    error_scim_type: str
    reason: str
    ignored_until: datetime | None
    is_held: bool
    # Number of dead letters of all kinds that the query counted; the same in every kind.
    letters_looked_at: int


@dataclass(frozen=True)
class FailureKinds:
    """The kinds of failure of a tenant. `is_cut` means that a limit was reached, so there may be further dead letters or kinds."""

    kinds: list[FailureKind]
    is_cut: bool


def failure_kinds(tenant_id: str, *, letters: int = LETTERS_LOOKED_AT, kinds: int = MOST_KINDS) -> FailureKinds:
    """Return the kinds of failure among the tenant's unsettled dead letters. The kinds with the most open dead letters come first."""
    found = rows_as(FailureKind, _KINDS, {"tenant": tenant_id, "letters": letters, "kinds": kinds})
    return FailureKinds(found, is_cut=bool(found) and (found[0].letters_looked_at >= letters or len(found) >= kinds))
