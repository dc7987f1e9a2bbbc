"""Decisions about dead letters: their effect, repeated decisions, ignored kinds of failure, and other tenants."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from events.models import EventStream
from identity.models import Tenant
from identity.services.failures import Invalid, NotFound
from provisioning.dead_letters import redelivery, triage
from provisioning.engine import delivering, dispatch, retention
from provisioning.models import Attempt, DeadLetter, Delivery, IgnoredKind
from provisioning.runs.failures import DataFailure
from tests.factories.admin import new_tenant
from tests.provisioning.engine.conftest import Recorder
from tests.provisioning.engine.logs import append_events

ACTOR = "ada@example.test"


@pytest.fixture(autouse=True)
def _one_attempt(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = []


def bury(tenant: Tenant, stream: EventStream, recorder: Recorder, key: str, text: str = "too long") -> DeadLetter:
    recorder.answers.setdefault(key, []).append(DataFailure(text, status=400))
    (event,) = append_events(tenant, [key])
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(stream.pk, key)
    return DeadLetter.objects.get(stream_id=stream.pk, event_id=event.event_id)


def decide(letter: DeadLetter, state: str, *, tenant_id: str = "", reason: str = "known") -> int:
    return triage.decide(tenant_id=tenant_id or letter.tenant_id, letter_ids=[letter.pk], state=state, reason=reason, actor=ACTOR)


def ignore(letter: DeadLetter, days: float = 1) -> int:
    until = timezone.now() + timedelta(days=days)
    kind = {"tenant_id": letter.tenant_id, "stream_id": letter.stream_id, "fingerprint": letter.fingerprint}
    return triage.ignore_kind(**kind, until=until, reason="they know", actor=ACTOR)


def test_a_decision_requires_a_reason_and_a_valid_state(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    letter = bury(tenant, stream, recorder, "user:a")
    for state, reason in (("acknowledged", "  "), ("redelivered", "why"), ("gone", "why")):
        with pytest.raises(Invalid):
            decide(letter, state, reason=reason)
    letter.refresh_from_db()
    assert (letter.state, letter.triage_actor) == ("open", "")


def test_another_tenant_cannot_decide_about_a_dead_letter(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    letter, other = bury(tenant, stream, recorder, "user:a"), new_tenant("other")
    kind = {"stream_id": stream.pk, "fingerprint": letter.fingerprint}
    assert decide(letter, "resolved", tenant_id=other.pk) == 0
    assert triage.decide_kind(tenant_id=other.pk, **kind, state="ignored", reason="why", actor=ACTOR) == 0
    with pytest.raises(NotFound):
        triage.ignore_kind(tenant_id=other.pk, **kind, until=timezone.now() + timedelta(1), reason="why", actor=ACTOR)
    assert not triage.stop_ignoring(tenant_id=other.pk, **kind)
    assert DeadLetter.objects.get(pk=letter.pk).state == "open"


def test_a_decision_is_applied_once_and_stored_with_its_actor_and_reason(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    letter = bury(tenant, stream, recorder, "user:a")
    assert [decide(letter, "acknowledged"), decide(letter, "acknowledged", reason="again")] == [1, 0]
    letter.refresh_from_db()
    assert (letter.state, letter.triage_actor, letter.triage_reason) == ("acknowledged", ACTOR, "known")
    assert letter.triaged_at is not None
    assert decide(letter, "resolved") == 1
    letter.refresh_from_db()
    assert (letter.resolution, letter.resolved_at is not None) == ("by hand", True)
    assert decide(letter, "acknowledged") == 0
    assert decide(letter, "open") == 1
    letter.refresh_from_db()
    assert (letter.resolution, letter.resolved_at) == ("", None)


def test_a_decision_changes_no_dead_letter_that_is_being_redelivered_or_was_delivered(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letter = bury(tenant, stream, recorder, "user:a")
    redelivery.redeliver_letters(tenant_id=tenant.pk, letter_ids=[letter.pk], order=redelivery.Order(ACTOR))
    assert decide(letter, "ignored") == 0
    delivering.deliver_lane(stream.pk, "user:a")
    assert [decide(letter, state) for state in ("open", "ignored", "acknowledged")] == [0, 0, 0]
    letter.refresh_from_db()
    assert (letter.state, letter.resolution) == ("resolved", "delivered")


@pytest.mark.parametrize("state", ["acknowledged", "ignored", "resolved"])
def test_a_dead_letter_with_a_decision_can_still_be_redelivered(
    state: str, tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letter = bury(tenant, stream, recorder, "user:a")
    decide(letter, state)
    assert redelivery.redeliver_letters(tenant_id=tenant.pk, letter_ids=[letter.pk], order=redelivery.Order(ACTOR)).count == 1
    delivering.deliver_lane(stream.pk, "user:a")
    letter.refresh_from_db()
    assert (letter.state, letter.resolution) == ("resolved", "delivered")


def test_new_dead_letters_of_an_ignored_kind_are_ignored_until_the_decision_expires(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    first, other = bury(tenant, stream, recorder, "user:a"), bury(tenant, stream, recorder, "user:b", "another")
    assert ignore(first) == 1
    second = bury(tenant, stream, recorder, "user:c")
    assert (second.state, second.triage_actor, second.triage_reason) == ("ignored", ACTOR, "they know")
    assert DeadLetter.objects.get(pk=other.pk).state == "open"
    IgnoredKind.objects.filter(stream_id=stream.pk).update(until=timezone.now() - timedelta(seconds=1))
    third = bury(tenant, stream, recorder, "user:d")
    assert (third.state, third.triage_reason) == ("open", "")
    assert DeadLetter.objects.get(pk=second.pk).state == "ignored"


def test_an_ignored_kind_of_failure_can_be_reopened(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    letter = bury(tenant, stream, recorder, "user:a")
    ignore(letter)
    stop = {"tenant_id": tenant.pk, "stream_id": stream.pk, "fingerprint": letter.fingerprint}
    assert [triage.stop_ignoring(**stop), triage.stop_ignoring(**stop)] == [True, False]
    assert bury(tenant, stream, recorder, "user:b").state == "open"


def test_a_redelivered_event_that_fails_with_an_ignored_kind_is_ignored_again(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letter = bury(tenant, stream, recorder, "user:a")
    ignore(letter)
    redelivery.redeliver_letters(tenant_id=tenant.pk, letter_ids=[letter.pk], order=redelivery.Order(ACTOR))
    recorder.answers["user:a"] = [DataFailure("too long", status=400)]
    delivering.deliver_lane(stream.pk, "user:a")
    letter.refresh_from_db()
    assert (letter.state, Delivery.objects.get(pk=letter.delivery_id).state) == ("ignored", "dead")


def test_a_decision_that_ends_in_the_past_or_has_no_kind_of_failure_is_refused(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letter = bury(tenant, stream, recorder, "user:a")
    with pytest.raises(Invalid):
        ignore(letter, days=-1)
    letter.fingerprint = ""
    with pytest.raises(NotFound):
        ignore(letter)


def test_retention_deletes_ignored_dead_letters_but_no_open_or_acknowledged_one(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    letters = {state: bury(tenant, stream, recorder, f"user:{state}") for state in ("open", "acknowledged", "ignored")}
    for state in ("acknowledged", "ignored"):
        decide(letters[state], state)
    Delivery.objects.filter(stream_id=stream.pk).update(created_at=timezone.now() - timedelta(days=400))
    retention.prune()
    assert set(DeadLetter.objects.filter(stream_id=stream.pk).values_list("state", flat=True)) == {"open", "acknowledged"}
    assert Attempt.objects.filter(tenant_id=tenant.pk).count() == 2


def test_decisions_are_deleted_with_their_stream(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    ignore(bury(tenant, stream, recorder, "user:a"))
    retention.drop_stream_rows(stream.pk)
    assert not IgnoredKind.objects.filter(stream_id=stream.pk).exists()
