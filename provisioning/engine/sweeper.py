"""Finds work after lost nudges and crashes. Each worker process has a sweeper thread; only one of these threads, the leader, sweeps at a
time."""

from __future__ import annotations

import logging
import threading
import time
import uuid

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from events.log import numbering
from events.record import tripwire
from foundation.database.statements import execute, fetch_all
from identity.services.jobs import take_unattended_jobs
from identity.stopped_tenants import STOPPED_TENANTS
from identity.tasks import RUN_JOB
from provisioning.engine import alerts, breaker, lanes, nudges, stream_tallies
from provisioning.models import FailureClass
from provisioning.runs.outcomes import Failure

logger = logging.getLogger(__name__)

LANES_PER_SWEEP = 500
_MARKS_PER_SWEEP = 500
_BURIED_PER_SWEEP = 1000
_HELD_TOO_LONG = Failure(FailureClass.CONFIGURATION.value, "the stream was held for longer than HOLD_MAX_SECONDS")

_LEAD = """
INSERT INTO provisioning_sweeper AS s (name, holder, lease_until)
VALUES ('lanes', %(me)s, clock_timestamp() + make_interval(secs => %(lease)s))
ON CONFLICT (name) DO UPDATE SET holder = EXCLUDED.holder, lease_until = EXCLUDED.lease_until
WHERE s.holder = %(me)s OR s.lease_until < clock_timestamp()
"""
_TENANTS_BEHIND = f"""
SELECT DISTINCT s.tenant_id FROM events_eventstream s JOIN events_head h ON h.tenant_id = s.tenant_id
WHERE s.status = 'enabled' AND s.position < h.position AND s.tenant_id NOT IN ({STOPPED_TENANTS})
"""  # noqa: S608  (a constant)
# The statement reads stream by stream, so that it never scans lanes of held or disabled streams. `statement_timestamp()` ends the scan of
# the index at the first lane that is due later. An expired lease makes a lane due again.
_DUE_LANES = f"""
UPDATE provisioning_lane SET nudged_until = clock_timestamp() + make_interval(secs => %(nudged)s) WHERE id IN (
    SELECT due.id FROM events_eventstream s CROSS JOIN LATERAL (
        SELECT l.id FROM provisioning_lane l
        WHERE l.stream_id = s.id AND l.not_before <= statement_timestamp()
            AND (l.lease_until IS NULL OR l.lease_until <= clock_timestamp())
            AND (l.nudged_until IS NULL OR l.nudged_until <= clock_timestamp())
        ORDER BY l.not_before, l.id + 0 LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ) due WHERE s.status = 'enabled' AND s.held_since IS NULL AND s.tenant_id NOT IN ({STOPPED_TENANTS}) LIMIT %(limit)s)
RETURNING stream_id, key
"""  # noqa: S608  (a constant)
_HELD_TOO_LONG_STREAMS = f"""
SELECT id FROM events_eventstream WHERE held_since < clock_timestamp() - make_interval(secs => %s) AND tenant_id NOT IN ({STOPPED_TENANTS})
"""  # noqa: S608  (a constant)


def sweep() -> None:
    """Run one round: record unrecorded changes, and send messages for waiting jobs, undispatched events, due lanes and due probes. Turn the
    waiting deliveries of streams that are held for too long into dead letters.
    """
    if settings.EVENTS_SWEEPER_ENABLED:
        tripwire.sweep(_MARKS_PER_SWEEP)
        for job_id in take_unattended_jobs():
            nudges.send(RUN_JOB, job_id)
    for (tenant_id,) in fetch_all(_TENANTS_BEHIND):
        nudges.send(nudges.DISPATCH, tenant_id)
    if not nudges.is_silent():
        nudge_due_lanes()
    for stream_id, tenant_id in breaker.take_due_probes():
        nudges.send(nudges.PROBE, stream_id, tenant_id)
    for (stream_id,) in fetch_all(_HELD_TOO_LONG_STREAMS, [settings.HOLD_MAX_SECONDS]):
        lanes.bury_waiting(stream_id, _HELD_TOO_LONG, limit=_BURIED_PER_SWEEP)


def nudge_due_lanes() -> int:
    """Send nudges for at most 500 due lanes that had no recent nudge; return the number of these lanes."""
    due = fetch_all(_DUE_LANES, {"nudged": settings.DELIVERY_NUDGE_SECONDS, "limit": LANES_PER_SWEEP})
    of_streams: dict[str, list[str]] = {}
    for stream_id, key in due:
        of_streams.setdefault(stream_id, []).append(key)
    for stream_id, keys in of_streams.items():
        nudges.send_into(stream_id, keys)
    return len(due)


def sweep_alerts() -> None:
    """Raise alerts, and send a nudge for each alert that no worker has taken."""
    for alert_id in alerts.raise_alerts():
        nudges.send(nudges.ALERT, str(alert_id))


def take_lead(me: uuid.UUID, lease_seconds: float) -> bool:
    """Become or stay the leader; return False if another process is the leader."""
    return execute(_LEAD, {"me": me, "lease": lease_seconds}) == 1


class SweeperThread(threading.Thread):
    """Stores the counts of attempts of its process every `DELIVERY_SWEEP_SECONDS`, and sweeps while this process is the leader.

    The thread starts after the fork.
    """

    def __init__(self) -> None:
        super().__init__(name="sweeper", daemon=True)
        self._me = uuid.uuid4()
        self._stopping = threading.Event()
        self._alerts_due = 0.0

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        # The lead lasts long enough for a slow sweep, and is short enough that another process soon replaces a killed leader.
        lease = 3 * settings.DELIVERY_SWEEP_SECONDS + 3
        while not self._stopping.wait(settings.DELIVERY_SWEEP_SECONDS):
            try:
                if settings.EVENTS_NUMBERER_ENABLED:
                    numbering.numberer().start()
                stream_tallies.flush()
                if take_lead(self._me, lease):
                    sweep()
                    self._sweep_alerts_when_due()
            except (DatabaseError, InterfaceError) as error:
                logger.warning("sweeping paused: %s", type(error).__name__)
                connection.close()
            except Exception:
                logger.exception("a sweep failed")
        connection.close()

    def _sweep_alerts_when_due(self) -> None:
        """Raise alerts once a minute. A new leader may raise alerts immediately: no alert is repeated, because each alert is raised only
        once per period."""
        if time.monotonic() >= self._alerts_due:
            self._alerts_due = time.monotonic() + alerts.EVERY_SECONDS
            sweep_alerts()
