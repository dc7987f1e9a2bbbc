from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from events.models import Event, EventStream
from identity.models import Tenant
from identity.services.failures import NotFound
from provisioning.dead_letters import redelivery
from provisioning.engine import delivering, dispatch, nudges
from provisioning.models import Attempt, DeadLetter, Delivery
from provisioning.runs.failures import DataFailure
from tests.deadlines import eventually
from tests.factories.models.identity import TenantFactory
from tests.provisioning.engine.conftest import Answer, Recorder
from tests.provisioning.engine.logs import append_events, make_stream


@pytest.fixture(autouse=True)
def _one_attempt(settings: Settings) -> None:
    settings.DELIVERY_RETRY_DELAYS = []


def _dead_letter(tenant: Tenant, stream: EventStream, recorder: Recorder, *, then: list[Answer | Exception] | None = None) -> Event:
    """Turn the first event of a user into a dead letter, and return the event. Each later event gets the next result of `then`."""
    following = then or []
    recorder.answers["user:a"] = [DataFailure("too long", status=400), *following]
    events = append_events(tenant, ["user:a"] * (1 + len(following)))
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(stream.pk, "user:a")
    recorder.taken.clear()
    return events[0]


def _letter(event: Event) -> DeadLetter:
    return DeadLetter.objects.get(event_id=event.event_id)


def _redeliver(tenant: Tenant, *letters: DeadLetter, force: bool = False) -> int:
    ids = [letter.pk for letter in letters]
    order = redelivery.Order("ada@example.test", reason="field widened", force=force)
    return redelivery.redeliver_letters(tenant_id=tenant.pk, letter_ids=ids, order=order).count


def test_a_redelivered_event_gets_a_new_series_of_attempts(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    event = _dead_letter(tenant, stream, recorder)

    assert _redeliver(tenant, _letter(event)) == 1
    waiting = _letter(event)
    assert (waiting.state, waiting.redelivery_actor, waiting.redelivery_reason) == ("redelivered", "ada@example.test", "field widened")
    assert waiting.redelivered_at is not None
    assert (waiting.rebuilt_position, waiting.rebuilt_body) == (None, None)
    delivering.deliver_lane(stream.pk, "user:a")

    assert recorder.taken == [("user:a", event.event_id, 2)]
    delivery = Delivery.objects.get(event=event.pk)
    assert (delivery.state, delivery.attempts, delivery.series_attempts, delivery.error_message) == ("delivered", 2, 1, "")
    letter = _letter(event)
    assert (letter.state, letter.resolution) == ("resolved", "delivered")
    tries = Attempt.objects.filter(delivery=delivery).order_by("number").values_list("outcome", "trigger")
    assert list(tries) == [("failed", "scheduled"), ("delivered", "manual")]


def test_a_redelivery_sends_a_message_for_its_lane_after_the_commit(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    letter = _letter(_dead_letter(tenant, stream, recorder))
    sent: list[tuple[object, ...]] = []
    # Record the messages instead of sending them to the broker.
    monkeypatch.setattr(nudges, "send", lambda *message: sent.append(message))
    settings.DELIVERY_NUDGES_ENABLED = True
    _redeliver(tenant, letter)
    eventually(lambda: (nudges.DELIVER, stream.pk, "user:a") in sent)


def test_a_failed_redelivery_reopens_the_same_dead_letter(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    event = _dead_letter(tenant, stream, recorder)
    recorder.answers["user:a"] = [DataFailure("still too long", status=400)]

    _redeliver(tenant, _letter(event))
    delivering.deliver_lane(stream.pk, "user:a")

    letter = _letter(event)
    assert (letter.state, letter.attempts, letter.reason) == ("open", 2, "still too long")
    assert letter.redelivery_actor == "ada@example.test"


def test_an_old_event_is_superseded_if_a_newer_event_was_written(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    event = _dead_letter(tenant, stream, recorder, then=[Answer()])

    _redeliver(tenant, _letter(event))
    delivering.deliver_lane(stream.pk, "user:a")

    assert recorder.taken == []
    assert Delivery.objects.get(event=event.pk).state == "superseded"
    assert (_letter(event).state, _letter(event).resolution) == ("resolved", "superseded")


def test_a_forced_redelivery_sends_an_old_event_even_after_a_newer_write(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    event = _dead_letter(tenant, stream, recorder, then=[Answer()])

    _redeliver(tenant, _letter(event), force=True)
    delivering.deliver_lane(stream.pk, "user:a")

    assert recorder.event_ids == [event.event_id]


@pytest.mark.parametrize("newer", [Answer(status="skipped", reason="no matching user"), DataFailure("also too long")])
def test_a_newer_event_that_was_not_written_does_not_supersede_an_old_event(
    tenant: Tenant, stream: EventStream, recorder: Recorder, newer: Answer | Exception
) -> None:
    event = _dead_letter(tenant, stream, recorder, then=[newer])

    _redeliver(tenant, _letter(event))
    delivering.deliver_lane(stream.pk, "user:a")

    assert recorder.event_ids == [event.event_id]


def test_deleting_a_missing_account_supersedes_older_events(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    recorder.answers["user:a"] = [DataFailure("too long", status=400), Answer(status="skipped", reason="no user to delete")]
    (created,) = append_events(tenant, ["user:a"], event_type="user.created")
    append_events(tenant, ["user:a"], event_type="user.deleted")
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(stream.pk, "user:a")
    recorder.taken.clear()

    _redeliver(tenant, _letter(created))
    delivering.deliver_lane(stream.pk, "user:a")

    assert recorder.taken == [], "a deleted user was created again"
    assert Delivery.objects.get(event=created.pk).state == "superseded"


def test_a_skipped_deletion_of_a_relation_supersedes_no_event(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    wide = make_stream(tenant, subscriptions=["group.updated", "group.member.deleted"])
    recorder.answers["group:a"] = [DataFailure("too long", status=400), Answer(status="skipped", reason="unsupported type")]
    (updated,) = append_events(tenant, ["group:a"], event_type="group.updated")
    append_events(tenant, ["group:a"], event_type="group.member.deleted")
    dispatch.dispatch_tenant(tenant.pk)
    delivering.deliver_lane(wide.pk, "group:a")
    recorder.taken.clear()

    _redeliver(tenant, _letter(updated))
    delivering.deliver_lane(wide.pk, "group:a")

    assert recorder.event_ids == [updated.event_id]


def test_a_redelivered_event_is_delivered_before_waiting_events_of_its_user(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    old = _dead_letter(tenant, stream, recorder)
    (new,) = append_events(tenant, ["user:a"])
    dispatch.dispatch_tenant(tenant.pk)

    _redeliver(tenant, _letter(old))
    delivering.deliver_lane(stream.pk, "user:a")

    assert recorder.event_ids == [old.event_id, new.event_id]


def test_repeated_requests_redeliver_a_dead_letter_once(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    letter = _letter(_dead_letter(tenant, stream, recorder))

    assert [_redeliver(tenant, letter, letter), _redeliver(tenant, letter)] == [1, 0]


def test_an_event_pruned_from_the_log_is_redelivered_from_its_dead_letter(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    event = _dead_letter(tenant, stream, recorder)
    Event.objects.filter(pk=event.pk).delete()

    _redeliver(tenant, _letter(event))
    delivering.deliver_lane(stream.pk, "user:a")

    assert recorder.event_ids == [event.event_id]


def test_dead_letters_of_another_tenant_cannot_be_redelivered(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    event = _dead_letter(tenant, stream, recorder)
    other = TenantFactory.create(id=f"{tenant.pk}-b", name="other", host=f"{tenant.pk}-b.example.test")

    assert _redeliver(other, _letter(event)) == 0
    with pytest.raises(NotFound, match="No delivery of this event has failed"):
        redelivery.redeliver_event(tenant_id=other.pk, stream_id=stream.pk, event_id=event.event_id, actor="x")
    assert redelivery.redeliver_event(tenant_id=tenant.pk, stream_id=stream.pk, event_id=event.event_id, actor="x")
