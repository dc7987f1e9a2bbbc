"""Processes are killed at every step of a delivery. No event is lost or reordered, and each kill repeats at most one delivery."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from events.models import EventStream
from identity.models import Job, Tenant
from identity.services.jobs import cancel_job
from provisioning.dead_letters.redelivery_jobs import Selection, progress_of, start_redelivery_job
from provisioning.models import Alert, DeadLetter, Delivery
from tests.deadlines import eventually
from tests.faults.conftest import RedisServer
from tests.faults.delivery_invariants import assert_sound, is_settled
from tests.faults.worker import ROOT, Worker, environment_of, recorded
from tests.provisioning.engine.logs import append_events, make_stream

pytestmark = pytest.mark.fault

StartWorker = Callable[..., Worker]
USERS = 6
ROUNDS = 4
QUICK = {"DELIVERY_LEASE_SECONDS": "1.5", "DELIVERY_RETRY_DELAYS": "0.2,0.2", "BREAKER_FAILURES": "0"}


@pytest.fixture
def stream(tenant: Tenant, start_worker: StartWorker) -> EventStream:
    """Create a stream after `start_worker` has disabled the streams of earlier tests."""
    return make_stream(tenant)


def append_rounds(tenant: Tenant, rounds: int = ROUNDS) -> None:
    """Append `rounds` interleaved events of each user."""
    keys = [f"user:{tenant.pk}-{number}" for number in range(USERS)]
    append_events(tenant, keys * rounds, data=[number for number in range(rounds) for _ in keys])


def states(stream: EventStream) -> set[str]:
    return set(Delivery.objects.filter(stream_id=stream.pk).values_list("state", flat=True))


def await_death(directory: Path, failpoint: str) -> None:
    """Wait until a process was killed at the failpoint. Before the kill, the process removes the failpoint's file."""
    eventually(lambda: not (directory / failpoint).exists(), seconds=30)


def bury_everything(tenant: Tenant, stream: EventStream, directory: Path) -> None:
    """Let a running worker turn the events of a log into dead letters."""
    (directory / "refuse").touch()
    append_rounds(tenant)
    eventually(lambda: is_settled(stream), seconds=60)
    assert states(stream) == {"dead"}
    (directory / "refuse").unlink()


@pytest.mark.parametrize("failpoint", ["dispatching", "dispatched", "claiming", "claimed", "ran", "settled"])
def test_a_worker_killed_at_a_step_of_a_successful_delivery_loses_no_event(
    failpoint: str, tenant: Tenant, stream: EventStream, start_worker: StartWorker, directory: Path
) -> None:
    (directory / failpoint).touch()
    start_worker(**QUICK)
    append_rounds(tenant)
    await_death(directory, failpoint)
    eventually(lambda: is_settled(stream), seconds=40)
    assert states(stream) == {"delivered"}
    assert_sound(stream, directory, crashes=1)


@pytest.mark.parametrize("failpoint", ["failing", "failed", "burying", "buried"])
def test_a_worker_killed_at_a_step_of_a_failed_delivery_loses_no_event(
    failpoint: str, tenant: Tenant, stream: EventStream, start_worker: StartWorker, directory: Path
) -> None:
    (directory / failpoint).touch()
    (directory / "refuse").touch()
    start_worker(**QUICK)
    append_rounds(tenant)
    await_death(directory, failpoint)
    eventually(lambda: is_settled(stream), seconds=60)
    # One attempt may be lost. The lost attempt counts as an attempt, so that an event that kills every worker also becomes a dead letter.
    assert states(stream) == {"dead"}
    assert DeadLetter.objects.filter(stream_id=stream.pk).count() == USERS * ROUNDS
    assert_sound(stream, directory, crashes=1)


@pytest.mark.parametrize("failpoint", ["tripped", "held", "probed"])
def test_a_worker_killed_while_a_stream_is_held_or_resumed_loses_no_event(
    failpoint: str, tenant: Tenant, stream: EventStream, start_worker: StartWorker, directory: Path
) -> None:
    """The failpoint `tripped` is before the hold, `held` between the hold and the release of the claim, `probed` before the resumption."""
    (directory / failpoint).touch()
    (directory / "refuse").touch()
    breaker = {
        "BREAKER_FAILURES": "4",
        "BREAKER_USERS": "2",
        "BREAKER_PROBE_SECONDS": "0.5",
        "DELIVERY_RETRY_DELAYS": ",".join(["0.2"] * 9),
    }
    start_worker(**{**QUICK, **breaker})
    append_rounds(tenant)
    if failpoint != "probed":
        await_death(directory, failpoint)
    eventually(lambda: EventStream.objects.of(tenant.pk).filter(pk=stream.pk, held_since__isnull=False).exists(), seconds=30)
    (directory / "refuse").unlink()
    await_death(directory, failpoint)
    eventually(lambda: is_settled(stream), seconds=40)
    stream.refresh_from_db()
    assert (states(stream), stream.held_since) == ({"delivered"}, None)
    assert_sound(stream, directory, crashes=1)


@pytest.mark.parametrize("failpoint", ["redelivering", "redelivered"])
def test_a_process_killed_while_it_redelivers_dead_letters_loses_no_event(
    failpoint: str, tenant: Tenant, stream: EventStream, start_worker: StartWorker, directory: Path, redis_server: RedisServer
) -> None:
    start_worker(**QUICK)
    bury_everything(tenant, stream, directory)
    (directory / failpoint).touch()
    command = [sys.executable, "-m", "tests.faults.redelivering", tenant.pk, stream.pk]
    environment = environment_of(directory, redis_server.url)
    killed = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, timeout=60)
    assert killed.returncode == -9
    # A process that is killed before the commit leaves no redelivery. A process that is killed after the commit has sent no nudge, so the
    # sweep finds the redelivered deliveries.
    done = USERS * ROUNDS if failpoint == "redelivered" else 0
    eventually(lambda: is_settled(stream) and Delivery.objects.filter(stream_id=stream.pk, state="delivered").count() == done, seconds=40)
    again = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=60)
    assert int(again.stdout.split()[-1]) == USERS * ROUNDS - done
    eventually(lambda: is_settled(stream), seconds=40)
    assert_redelivered_once(stream, directory)


def assert_redelivered_once(stream: EventStream, directory: Path, *, crashes: int = 0) -> None:
    letters = DeadLetter.objects.filter(stream_id=stream.pk)
    assert set(letters.values_list("state", "resolution")) == {("resolved", "delivered")}
    assert set(letters.values_list("delivery__redeliveries", flat=True)) == {1}
    # The dead letters of each user were delivered in order, although they were all redelivered at the same time.
    taken = [(line["key"], line["number"]) for line in recorded(directory, step="end")]
    for key in {key for key, _ in taken}:
        numbers = [number for at, number in taken if at == key]
        assert list(dict.fromkeys(numbers)) == list(range(ROUNDS))
    assert_sound(stream, directory, crashes=crashes)


def let_lease_run_out(job: Job) -> None:
    """End the lease of the job now, instead of after a minute."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE identity_job SET lease_until = now() WHERE id = %s AND lease_until IS NOT NULL", [job.pk])


def redeliver_all(stream: EventStream, rate: int = 100) -> Job:
    return start_redelivery_job(
        tenant_id=stream.tenant_id, stream_id=stream.pk, selection=Selection(), actor="ada@example.test", rate_per_second=rate
    )


@pytest.mark.parametrize("failpoint", ["redelivering", "redelivered", "claimed", "ran", "settling", "settled"])
def test_a_worker_killed_during_a_redelivery_job_loses_no_event(
    failpoint: str, tenant: Tenant, stream: EventStream, start_worker: StartWorker, directory: Path
) -> None:
    start_worker(**QUICK, EVENTS_SWEEPER_ENABLED="1")
    bury_everything(tenant, stream, directory)
    (directory / failpoint).touch()
    job = redeliver_all(stream)
    await_death(directory, failpoint)

    def is_finished() -> bool:
        let_lease_run_out(job)
        job.refresh_from_db()
        return job.is_finished and is_settled(stream)

    eventually(is_finished, seconds=60, pause=0.2)
    assert job.status == "completed", job.status_details
    progress = progress_of(job)
    assert (progress.total, progress.done, progress.left, progress.failed) == (USERS * ROUNDS, USERS * ROUNDS, 0, 0)
    assert_redelivered_once(stream, directory, crashes=1)


@pytest.mark.parametrize("failpoint", ["redelivering", "redelivered"])
def test_a_job_canceled_after_its_worker_was_killed_redelivers_nothing_more(
    failpoint: str, tenant: Tenant, stream: EventStream, start_worker: StartWorker, directory: Path
) -> None:
    start_worker(**QUICK, EVENTS_SWEEPER_ENABLED="1")
    bury_everything(tenant, stream, directory)
    (directory / failpoint).touch()
    job = redeliver_all(stream, rate=1)
    await_death(directory, failpoint)
    cancelled = cancel_job(tenant_id=tenant.pk, job_id=job.pk, actor="ada@example.test")
    let_lease_run_out(job)
    eventually(lambda: is_settled(stream), seconds=40)
    # A chunk of the job redelivers its dead letters in one transaction. So a worker that was killed during the chunk has redelivered
    # nothing.
    assert cancelled.status == "failed"
    assert Delivery.objects.filter(stream_id=stream.pk, redeliveries__gt=0).count() == 0
    append_events(tenant, ["user:later"])
    eventually(lambda: Delivery.objects.filter(stream_id=stream.pk, key="user:later", state="delivered").exists(), seconds=20)
    assert Delivery.objects.filter(stream_id=stream.pk, redeliveries__gt=0).count() == 0
    assert_sound(stream, directory, crashes=1)


@pytest.mark.parametrize("failpoint", ["alert_taken", "alert_sent"])
def test_a_worker_killed_while_it_sends_an_alert_repeats_no_alert(
    failpoint: str, tenant: Tenant, stream: EventStream, start_worker: StartWorker, directory: Path, settings: Settings
) -> None:
    """An alert is sent at most once in a period. If a kill loses the alert, it is raised again in the next period (ADR 0053)."""
    (directory / failpoint).touch()
    (directory / "refuse").touch()
    append_rounds(tenant, rounds=1)
    first = start_worker(**QUICK, DEAD_LETTER_ALERT_FIRST="1")
    eventually(lambda: is_settled(stream), seconds=60)
    first.kill()
    start_worker(**QUICK, DEAD_LETTER_ALERT_FIRST="1")
    await_death(directory, failpoint)
    (directory / "refuse").unlink()
    append_events(tenant, ["user:later"])
    eventually(lambda: Delivery.objects.filter(stream_id=stream.pk, key="user:later", state="delivered").exists(), seconds=20)
    alert = Alert.objects.get(stream_id=stream.pk)
    assert (alert.kind, alert.taken_at is not None, alert.posted_at) == ("new_failure", True, None)
    assert_sound(stream, directory, crashes=1)
