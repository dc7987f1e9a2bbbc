"""Redelivery jobs: the selection of dead letters, the order, the progress, and the cancellation."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from events.models import EventStream
from identity.imports.imports import start_import
from identity.models import Connection, Job, Tenant
from identity.services.failures import Conflict, Invalid, NotFound, NotSupported
from identity.services.jobs import cancel_job, run_job
from provisioning.dead_letters import triage
from provisioning.dead_letters.redelivery_jobs import Progress, Selection, progress_of, start_redelivery_job
from provisioning.engine import delivering, dispatch, lanes
from provisioning.models import DeadLetter, Delivery
from provisioning.runs.failures import DataFailure
from tests.factories.admin import new_tenant
from tests.factories.models.identity import UserFactory
from tests.provisioning.engine.conftest import Recorder
from tests.provisioning.engine.logs import append_events

ACTOR = "ada@example.test"


@pytest.fixture(autouse=True)
def _one_attempt(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = []


def deliver_all(stream: EventStream) -> None:
    claim = lanes.claim_oldest(stream.pk)
    while claim is not None:
        claim = delivering.deliver_claim(claim, delivering.Turn()).next or lanes.claim_oldest(stream.pk)


def bury(tenant: Tenant, stream: EventStream, recorder: Recorder, *keys: str, status: int = 400, text: str = "refused") -> list[DeadLetter]:
    for key in keys:
        recorder.answers.setdefault(key, []).append(DataFailure(text, status=status))
    events = append_events(tenant, list(keys))
    dispatch.dispatch_tenant(tenant.pk)
    deliver_all(stream)
    recorder.taken.clear()
    by_id = {letter.event_id: letter for letter in DeadLetter.objects.filter(stream_id=stream.pk)}
    return [by_id[event.event_id] for event in events]


def start(stream: EventStream, selection: Selection | None = None, rate: int = 50) -> Job:
    return start_redelivery_job(
        tenant_id=stream.tenant_id, stream_id=stream.pk, selection=selection or Selection(), actor=ACTOR, rate_per_second=rate
    )


def chosen(stream: EventStream, selection: Selection) -> set[int]:
    read_back = Selection.of_document(json.loads(json.dumps(selection.as_document())))
    assert read_back == selection
    return set(read_back.of(tenant_id=stream.tenant_id, stream_id=stream.pk).values_list("pk", flat=True))


def test_each_condition_of_a_selection_reduces_the_selected_dead_letters(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    one, two = bury(tenant, stream, recorder, "user:a")[0], bury(tenant, stream, recorder, "user:b", status=409, text="taken")[0]
    DeadLetter.objects.filter(pk=two.pk).update(
        error_scim_type="uniqueness", error_class="shape", event_type="user.created", error_status=None
    )
    now = timezone.now()
    for selection in (
        Selection(key="user:b"),
        Selection(error_class="shape"),
        Selection(error_status=0),
        Selection(error_scim_type="uniqueness"),
        Selection(fingerprint=two.fingerprint),
        Selection(event_id=Delivery.objects.get(pk=two.delivery_id).event_id),
        Selection(event_types=("user.created", "user.deleted")),
    ):
        assert chosen(stream, selection) == {two.pk}, selection
    assert chosen(stream, Selection(error_status=400)) == {one.pk}
    assert chosen(stream, Selection(died_from=now - timedelta(hours=1), died_to=now + timedelta(hours=1))) == {one.pk, two.pk}
    assert chosen(stream, Selection(died_to=now - timedelta(hours=1))) == set()
    assert chosen(stream, Selection(created_from=now + timedelta(hours=1))) == set()


def test_ignored_dead_letters_are_selected_only_if_the_selection_names_their_state(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letters = dict(zip(("open", "acknowledged", "ignored", "resolved"), bury(tenant, stream, recorder, *"abcd"), strict=True))
    for state, letter in letters.items():
        if state != "open":
            triage.decide(tenant_id=tenant.pk, letter_ids=[letter.pk], state=state, reason="known", actor=ACTOR)
    assert chosen(stream, Selection()) == {letters["open"].pk, letters["acknowledged"].pk}
    assert chosen(stream, Selection(states=("ignored",))) == {letters["ignored"].pk}
    assert chosen(stream, Selection(states=("resolved", "redelivered"))) == set()


def test_a_job_redelivers_the_events_of_each_user_in_order_and_counts_the_results(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letters = bury(tenant, stream, recorder, "user:b", "user:a", "user:b", "user:c")
    append_events(tenant, ["user:c"])
    dispatch.dispatch_tenant(tenant.pk)
    deliver_all(stream)
    recorder.taken.clear()
    recorder.answers["user:a"] = [DataFailure("refused again", status=400)]
    job = start(stream)
    assert progress_of(job) == Progress(4, 4, 0, 0, 0, 0, 0, 0)

    run_job(job.pk)
    job.refresh_from_db()
    assert (progress_of(job).left, progress_of(job).under_way) == (0, 4)
    deliver_all(stream)

    assert progress_of(job) == Progress(total=4, left=0, under_way=0, done=2, failed=1, superseded=1, blocked=0, skipped=0)
    assert [event_id for key, event_id, _ in recorder.taken if key == "user:b"] == [letters[0].event_id, letters[2].event_id]
    assert Delivery.objects.get(event_id=letters[3].event_id).state == "superseded"


def test_each_chunk_of_a_job_continues_after_the_dead_letters_of_the_previous_chunk(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letters = bury(tenant, stream, recorder, "user:a", "user:b", "user:b", "user:c", "user:b")
    job = start(stream, rate=1)
    for left in (3, 1, 0):
        run_job(job.pk)
        job.refresh_from_db()
        assert progress_of(job).left == left
    assert progress_of(job).under_way == len(letters)


def test_a_job_counts_the_dead_letters_that_it_does_not_redeliver(
    tenant: Tenant, stream: EventStream, recorder: Recorder, database_connection: Connection
) -> None:
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection)
    deletion, meanwhile, _ = bury(tenant, stream, recorder, f"user:{user.user_id}", "user:b", "user:c")
    DeadLetter.objects.filter(pk=deletion.pk).update(event_type="user.deleted")
    job = start(stream)
    assert job.summary == {"total": 3, "redelivered": 0, "skipped": 0}
    # Another redelivery puts the dead letter back into its lane after this job has selected the dead letter.
    Delivery.objects.filter(pk=meanwhile.delivery_id).update(state="todo")

    while not run_job(job.pk, chunks=1):
        # The dead letter of the deletion stays open, because its user exists again. The next chunks must not count it again.
        assert progress_of(Job.objects.get(pk=job.pk)).blocked <= 1

    job.refresh_from_db()
    progress = progress_of(job)
    assert (progress.total, progress.left, progress.under_way) == (3, 0, 1)
    assert (progress.blocked, progress.skipped) == (1, 1)
    assert DeadLetter.objects.get(pk=deletion.pk).state == "open"


def test_a_job_tries_the_deletion_of_a_user_that_exists_again_only_once(
    tenant: Tenant, stream: EventStream, recorder: Recorder, database_connection: Connection
) -> None:
    user = UserFactory.create(tenant_id=tenant.pk, connection=database_connection)
    deletion, *_ = bury(tenant, stream, recorder, f"user:{user.user_id}", "user:x", "user:y", "user:z")
    DeadLetter.objects.filter(pk=deletion.pk).update(event_type="user.deleted")
    job = start(stream, rate=1)

    # The job has two chunks with two dead letters each, and a last chunk that finds no dead letter.
    for _ in range(3):
        run_job(job.pk)

    job.refresh_from_db()
    progress = progress_of(job)
    assert job.status == Job.Status.COMPLETED
    assert (progress.blocked, progress.under_way, progress.left) == (1, 3, 0)


def test_a_canceled_job_stops_and_does_not_undo_deliveries(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    bury(tenant, stream, recorder, "user:a", "user:b", "user:c")
    job = start(stream, rate=1)
    run_job(job.pk)
    ended = cancel_job(tenant_id=tenant.pk, job_id=job.pk, actor=ACTOR)
    assert (ended.status, ended.status_details, ended.is_finished) == ("failed", f"Canceled by {ACTOR}.", True)
    assert run_job(job.pk)
    deliver_all(stream)
    assert sorted(key for key, _, _ in recorder.taken) == ["user:a", "user:b"]
    assert (progress_of(ended).left, progress_of(ended).done) == (1, 2)
    with pytest.raises(Conflict):
        cancel_job(tenant_id=tenant.pk, job_id=job.pk, actor=ACTOR)
    again = start(stream)
    run_job(again.pk)
    deliver_all(stream)
    assert not DeadLetter.objects.filter(stream_id=stream.pk).exclude(state="resolved").exists()


def test_a_dead_letter_that_is_newer_than_the_job_is_not_redelivered(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    bury(tenant, stream, recorder, "user:a")
    job = start(stream)
    bury(tenant, stream, recorder, "user:b")
    run_job(job.pk)
    deliver_all(stream)
    assert [key for key, _, _ in recorder.taken] == ["user:a"]
    assert DeadLetter.objects.get(stream_id=stream.pk, key="user:b").state == "open"


def test_a_tenant_can_cancel_only_its_own_cancelable_jobs(
    tenant: Tenant, stream: EventStream, recorder: Recorder, database_connection: Connection
) -> None:
    bury(tenant, stream, recorder, "user:a")
    job = start(stream)
    imported = start_import(tenant_id=tenant.pk, connection_id=database_connection.pk, rows=[{"email": "ada@example.test"}])
    with pytest.raises(NotSupported):
        cancel_job(tenant_id=tenant.pk, job_id=imported.pk, actor=ACTOR)
    with pytest.raises(NotFound):
        cancel_job(tenant_id=new_tenant("other").pk, job_id=job.pk, actor=ACTOR)
    assert Job.objects.of(tenant.pk).get(pk=job.pk).status == "pending"


def test_a_stream_has_one_redelivery_job_at_a_time_with_a_limited_rate(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    bury(tenant, stream, recorder, "user:a")
    for rate in (0, -1, 101):
        with pytest.raises(Invalid):
            start(stream, rate=rate)
    start(stream, rate=100)
    with pytest.raises(Conflict, match="Another job is already redelivering failed events of this stream"):
        start(stream)
