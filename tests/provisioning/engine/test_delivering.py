"""The turn of a worker process after one message, with a destination in this process."""

from __future__ import annotations

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection
from pytest_django.fixtures import Settings

from events.models import EventStream
from foundation.tenancy import current_tenant
from identity.models import Tenant
from provisioning.engine import delivering, destinations, dispatch, nudges
from provisioning.engine.retrying import RetryLater
from provisioning.models import Attempt, Delivery
from provisioning.runs.failures import DataFailure, TransientFailure
from tests.provisioning.engine.conftest import Answer, Recorder
from tests.provisioning.engine.logs import DESTINATION, append_events


@pytest.fixture(autouse=True)
def sent(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Return the list of the messages that would be sent to the broker."""
    settings.DELIVERY_RETRY_JITTER = 0.0
    messages: list[tuple[object, ...]] = []

    def send(*message: str, countdown: float | None = None) -> bool:
        messages.append((*message, countdown))
        return True

    monkeypatch.setattr(nudges, "send", send)
    return messages


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> int:
    """Limit a turn to 20 deliveries, and return this number."""
    monkeypatch.setattr(delivering, "TURN_DELIVERIES", 20)
    return 20


def _queue(tenant: Tenant, *keys: str) -> None:
    append_events(tenant, list(keys))
    dispatch.dispatch_tenant(tenant.pk)


def _states(stream: EventStream) -> list[str]:
    return list(Delivery.objects.filter(stream_id=stream.pk).order_by("position").values_list("state", flat=True))


def test_one_turn_delivers_all_of_several_short_lanes(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    _queue(tenant, "user:a", "user:b", "user:a", "user:c")

    delivering.deliver_lane(stream.pk, "user:a")

    assert [key for key, _, _ in recorder.taken] == ["user:a", "user:a", "user:b", "user:c"]
    assert _states(stream) == ["delivered"] * 4


def test_a_turn_ends_after_its_maximum_of_deliveries_and_sends_another_message(
    tenant: Tenant, stream: EventStream, recorder: Recorder, sent: list[tuple[object, ...]], short_turns: int
) -> None:
    _queue(tenant, *["user:a"] * (short_turns + 5))

    delivering.deliver_lane(stream.pk, "user:a")

    assert len(recorder.taken) == short_turns
    assert sent == [(nudges.DELIVER, stream.pk, "user:a", None)]


def test_a_message_is_sent_for_the_lane_of_a_delivery_that_the_turn_left(
    tenant: Tenant, stream: EventStream, recorder: Recorder, sent: list[tuple[object, ...]], short_turns: int
) -> None:
    _queue(tenant, *["user:a"] * short_turns, "user:b")

    delivering.deliver_lane(stream.pk, "user:a")

    (left,) = Delivery.objects.filter(stream_id=stream.pk, state="todo")
    assert sent == [(nudges.DELIVER, stream.pk, left.key, None)]
    sent.clear()
    delivering.deliver_lane(stream.pk, left.key)
    assert (len(recorder.taken), sent) == (short_turns + 1, [])


def test_a_turn_without_remaining_deliveries_sends_no_message(
    tenant: Tenant, stream: EventStream, recorder: Recorder, sent: list[tuple[object, ...]], short_turns: int
) -> None:
    _queue(tenant, *["user:a"] * short_turns)

    delivering.deliver_lane(stream.pk, "user:a")

    assert (len(recorder.taken), sent) == (short_turns, [])


def test_a_turn_ends_after_its_time_limit_or_its_maximum_of_deliveries() -> None:
    assert not delivering.Turn(seconds=0.0).goes_on()
    turn = delivering.Turn(seconds=60.0, deliveries=2)
    assert [turn.goes_on(), turn.goes_on()] == [True, False]


def test_the_exception_for_a_failed_delivery_contains_the_remaining_delay(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings
) -> None:
    settings.DELIVERY_RETRY_DELAYS = [7.0]
    recorder.answers["user:a"] = [TransientFailure("away", status=503)]
    _queue(tenant, "user:a", "user:b")

    with pytest.raises(RetryLater) as raised:
        delivering.deliver_lane(stream.pk, "user:a")

    assert raised.value.seconds == 7.0
    assert _states(stream) == ["todo", "delivered"]
    with pytest.raises(RetryLater) as raised:
        delivering.deliver_lane(stream.pk, "user:a")
    assert 6.0 < raised.value.seconds <= 7.0


def test_a_failure_with_a_long_delay_sends_no_message(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings, sent: list[tuple[object, ...]]
) -> None:
    settings.DELIVERY_RETRY_DELAYS = [31.0]
    recorder.answers["user:a"] = [TransientFailure("away")]
    _queue(tenant, "user:a")

    delivering.deliver_lane(stream.pk, "user:a")

    assert sent == []


def test_a_failure_in_another_lane_sends_a_message_for_that_lane(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings, sent: list[tuple[object, ...]]
) -> None:
    settings.DELIVERY_RETRY_DELAYS = [7.0]
    recorder.answers["user:b"] = [TransientFailure("away")]
    _queue(tenant, "user:a", "user:b")

    delivering.deliver_lane(stream.pk, "user:a")

    assert sent == [(nudges.DELIVER, stream.pk, "user:b", 7.0)]


def test_the_details_of_a_failure_are_stored_with_its_attempt(
    tenant: Tenant, stream: EventStream, recorder: Recorder, settings: Settings
) -> None:
    settings.DELIVERY_RETRY_DELAYS = []
    error = DataFailure("value\0 rejected", status=400, scim_type="invalidValue")
    error.exchanges = [{"request": {"path": "/Users"}}]
    error.log_lines = [{"level": "error", "message": "sync failed"}]
    recorder.answers["user:a"] = [error]
    _queue(tenant, "user:a")

    delivering.deliver_lane(stream.pk, "user:a")

    attempt = Attempt.objects.get(tenant_id=tenant.pk)
    assert (attempt.outcome, attempt.error_class, attempt.error_status, attempt.error_scim_type) == ("failed", "data", 400, "invalidValue")
    assert attempt.error_message == "value rejected"
    assert (attempt.exchanges, attempt.log_lines) == (error.exchanges, error.log_lines)
    assert attempt.duration_ms is not None


def test_the_result_of_a_success_is_stored_without_bodies(tenant: Tenant, stream: EventStream, recorder: Recorder) -> None:
    recorder.answers["user:a"] = [Answer(reason="created", detail={"id": "42"}, log_lines=[{"message": "created ada"}])]
    _queue(tenant, "user:a")

    delivering.deliver_lane(stream.pk, "user:a")

    delivery = Delivery.objects.get(stream_id=stream.pk)
    assert (delivery.reason, delivery.detail, delivery.is_written) == ("created", {"id": "42"}, True)
    assert Attempt.objects.get(delivery=delivery).log_lines == []


@pytest.mark.parametrize(
    ("error", "error_class"),
    [(ValueError("odd"), "action"), (SoftTimeLimitExceeded(), "transient"), (TimeoutError(), "transient"), (DataFailure("x"), "data")],
)
def test_every_error_has_a_failure_class(error: Exception, error_class: str) -> None:
    failure = delivering.failure_of(error, 1.0)

    assert failure.error_class == error_class
    assert failure.message


def test_a_delivery_runs_outside_a_transaction_and_in_the_context_of_its_tenant(
    tenant: Tenant, stream: EventStream, recorder: Recorder
) -> None:
    seen: list[object] = []

    def look(*_: object) -> Answer:
        seen.extend([connection.in_atomic_block, current_tenant()])
        return Answer()

    destinations.DESTINATIONS[DESTINATION] = look
    _queue(tenant, "user:a")

    delivering.deliver_lane(stream.pk, "user:a")

    assert seen == [False, tenant.pk]
