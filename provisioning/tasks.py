"""Celery tasks of provisioning. Arguments are ids; every task is idempotent."""

from __future__ import annotations

from celery import shared_task

from provisioning.dead_letters import redelivery_jobs  # noqa: F401  (registers its jobs)
from provisioning.engine import delivering, dispatch, nudges, retention, sweeper
from provisioning.engine.alert_sending import send_alert
from provisioning.engine.retrying import RetryingTask
from provisioning.services import row_acts  # noqa: F401  (registers jobs of the admin)
from provisioning.synchronization import work  # noqa: F401  (registers its jobs)
from provisioning.trials.event_trials import work_on_event
from provisioning.trials.read_probe import hold_when_reading_is_refused


@shared_task(name=nudges.DISPATCH)
def dispatch_tenant(tenant_id: str) -> None:
    """Dispatch the tenant's log to its streams and send nudges for the new lanes."""
    for done in dispatch.dispatch_tenant(tenant_id):
        nudges.send_into(done.stream_id, done.new_lanes)


@shared_task(name=nudges.DELIVER, base=RetryingTask)
def deliver(stream_id: str, key: str) -> None:
    """Deliver for one turn, starting with the named lane."""
    delivering.deliver_lane(stream_id, key)


@shared_task(name=nudges.PROBE)
def probe(stream_id: str, tenant_id: str) -> None:
    """Run one delivery of a held stream as a probe."""
    delivering.probe_stream(stream_id, tenant_id)


@shared_task(name=nudges.READ_PROBE)
def read_probe(stream_id: str, tenant_id: str) -> None:
    """After a 403, send a read request; hold the stream if the destination also refuses this request."""
    hold_when_reading_is_refused(stream_id=stream_id, tenant_id=tenant_id)


@shared_task(name=nudges.ALERT)
def alert(alert_id: str) -> None:
    """Send one alert, unless another worker has taken it."""
    send_alert(int(alert_id))


@shared_task(name=nudges.TRY)
def try_event(trial_id: str) -> None:
    """Run an action for the test event of a trial, unless another worker has taken the trial."""
    work_on_event(trial_id)


@shared_task(name="provisioning.sweep")
def sweep() -> None:
    """Sweep once, even if another process is the leader."""
    sweeper.sweep()


@shared_task(name="provisioning.prune")
def prune() -> None:
    """Delete rows that are older than their retention."""
    retention.prune()
