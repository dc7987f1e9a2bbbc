"""Celery's edges. Arguments are ids only; running any of them twice is harmless."""

from __future__ import annotations

from celery import shared_task

from provisioning.dead_letters import redelivery_jobs  # noqa: F401  (it registers its jobs)
from provisioning.engine import delivering, dispatch, nudges, retention, sweeper
from provisioning.engine.alert_sending import send_alert
from provisioning.engine.retrying import RetryingTask
from provisioning.services import row_acts  # noqa: F401  (it registers what jobs of the admin do)
from provisioning.synchronization import work  # noqa: F401  (it registers what its jobs do)
from provisioning.trials.event_trials import work_on_event
from provisioning.trials.read_probe import hold_when_reading_is_refused


@shared_task(name=nudges.DISPATCH)
def dispatch_tenant(tenant_id: str) -> None:
    """Bring the tenant's streams to the head of its log and send workers into the new lanes."""
    for done in dispatch.dispatch_tenant(tenant_id):
        nudges.send_into(done.stream_id, done.new_lanes)


@shared_task(name=nudges.DELIVER, base=RetryingTask)
def deliver(stream_id: str, key: str) -> None:
    """Deliver for one turn, the named lane first."""
    delivering.deliver_lane(stream_id, key)


@shared_task(name=nudges.PROBE)
def probe(stream_id: str, tenant_id: str) -> None:
    """Try one delivery of a held stream."""
    delivering.probe_stream(stream_id, tenant_id)


@shared_task(name=nudges.READ_PROBE)
def read_probe(stream_id: str, tenant_id: str) -> None:
    """Hold a stream that was answered with 403 when its destination refuses to be read too."""
    hold_when_reading_is_refused(stream_id=stream_id, tenant_id=tenant_id)


@shared_task(name=nudges.ALERT)
def alert(alert_id: str) -> None:
    """Send one alert, unless somebody does already."""
    send_alert(int(alert_id))


@shared_task(name=nudges.TRY)
def try_event(trial_id: str) -> None:
    """Run an action for the test event of a trial, unless somebody has."""
    work_on_event(trial_id)


@shared_task(name="provisioning.sweep")
def sweep() -> None:
    """Sweep once, whoever leads."""
    sweeper.sweep()


@shared_task(name="provisioning.prune")
def prune() -> None:
    """Drop what is older than its retention."""
    retention.prune()
