"""Metrics of provisioning that are read from the database."""

from __future__ import annotations

from events.figures import DatabaseFigures, Figure
from provisioning.engine.not_found import ROWS

# Counting stops at this number for each stream or tenant. This limits the cost of a scrape. An index serves each count.
_MOST_OF_ONE = 1000
# The due lanes of the stream `s`, with the same conditions as the sweep.
_DUE = """
SELECT l.not_before FROM provisioning_lane l WHERE l.stream_id = s.id AND l.not_before <= statement_timestamp() ORDER BY l.not_before
"""
_DELIVERS = "s.status = 'enabled' AND s.held_since IS NULL"

PROVISIONING = DatabaseFigures(
    "provisioning",
    [
        Figure(
            "provisioning_lanes_due",
            f"Due lanes of enabled streams that are not held; at most {_MOST_OF_ONE} are counted per stream.",
            f"SELECT count(*) FROM events_eventstream s CROSS JOIN LATERAL ({_DUE} LIMIT {_MOST_OF_ONE}) due WHERE {_DELIVERS}",
        ),
        Figure(
            "provisioning_oldest_due_lane_age_seconds",
            "Seconds since the oldest due lane became due.",
            "SELECT max(extract(epoch FROM clock_timestamp() - due.not_before))"
            f" FROM events_eventstream s CROSS JOIN LATERAL ({_DUE} LIMIT 1) due WHERE {_DELIVERS}",
        ),
        Figure(
            "provisioning_positions_behind",
            "Log positions that enabled streams have not dispatched yet.",
            "SELECT sum(greatest(h.position - s.position, 0)) FROM events_eventstream s JOIN events_head h ON h.tenant_id = s.tenant_id"
            " WHERE s.status = 'enabled'",
        ),
        Figure(
            "provisioning_streams_held",
            "Streams that are held: their destination is misconfigured or unreachable, or deletions wait for approval.",
            "SELECT count(*) FROM events_eventstream WHERE held_since IS NOT NULL",
        ),
        Figure(
            "provisioning_users_not_found",
            "Events of the last 24 hours that were skipped because the server has no such user; "
            f"at most {_MOST_OF_ONE} are counted per stream.",
            f"SELECT count(*) FROM events_eventstream s CROSS JOIN LATERAL ({ROWS} LIMIT {_MOST_OF_ONE}) found",
        ),
        Figure(
            "provisioning_dead_letters_open",
            f"Open dead letters; at most {_MOST_OF_ONE} are counted per tenant.",
            "SELECT count(*) FROM events_head h CROSS JOIN LATERAL (SELECT 1 FROM provisioning_deadletter d"
            f" WHERE d.tenant_id = h.tenant_id AND d.state = 'open' LIMIT {_MOST_OF_ONE}) open",
        ),
    ],
)
