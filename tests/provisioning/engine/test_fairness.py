"""The order in which one worker process gives turns to the streams of several tenants."""

from __future__ import annotations

import pytest

from events.models import EventStream
from foundation.database.statements import fetch_all
from identity.models import Tenant
from provisioning.engine import delivering, dispatch, fairness, lane_rows, nudges
from provisioning.engine.fairness import Rota
from provisioning.runs.failures import TransientFailure
from tests.factories.models.identity import TenantFactory
from tests.provisioning.engine.conftest import Recorder
from tests.provisioning.engine.logs import append_events, make_stream

TURN = 3


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return the list of the messages that would be sent to the broker, the oldest message first."""
    sent: list[tuple[str, ...]] = []

    def send(*message: str, countdown: float | None = None) -> bool:
        sent.append(message)
        return True

    monkeypatch.setattr(nudges, "send", send)
    return sent


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivering, "TURN_DELIVERIES", TURN)
    monkeypatch.setattr(fairness, "PATIENCE_SECONDS", 0.0)


@pytest.fixture
def other(tenant: Tenant) -> Tenant:
    return TenantFactory.create(id=f"{tenant.pk}-b", name="other", host=f"b.{tenant.pk}.example.test")


def burst(tenant: Tenant, count: int) -> EventStream:
    """Create a stream of the tenant with one due lane for each of `count` users."""
    stream = make_stream(tenant)
    append_events(tenant, [f"user:{tenant.pk}-{number}" for number in range(count)])
    dispatch.dispatch_tenant(tenant.pk)
    return stream


def run_next(messages: list[tuple[str, ...]]) -> None:
    task, *arguments = messages.pop(0)
    assert task == nudges.DELIVER
    delivering.deliver_lane(*arguments)


def test_a_burst_delays_the_event_of_another_tenant_by_one_turn(
    tenant: Tenant, other: Tenant, recorder: Recorder, messages: list[tuple[str, ...]]
) -> None:
    busy, quiet = burst(tenant, 5 * TURN), burst(other, 1)
    messages += [(nudges.DELIVER, busy.pk, f"user:{tenant.pk}-{number}") for number in range(5)]
    messages.append((nudges.DELIVER, quiet.pk, f"user:{other.pk}-0"))

    run_next(messages)
    run_next(messages)

    *before, after = [key for key, _, _ in recorder.taken]
    assert after == f"user:{other.pk}-0"
    assert len(before) == TURN


def test_the_message_of_a_stream_that_must_wait_for_another_stream_is_sent_again(
    tenant: Tenant, other: Tenant, recorder: Recorder, messages: list[tuple[str, ...]]
) -> None:
    busy, _ = burst(tenant, 2 * TURN), burst(other, 1)
    delivering.deliver_lane(busy.pk, f"user:{tenant.pk}-0")
    messages.clear()

    delivering.deliver_lane(busy.pk, f"user:{tenant.pk}-{TURN}")

    assert messages == [(nudges.DELIVER, busy.pk, f"user:{tenant.pk}-{TURN}")]
    while messages:
        run_next(messages)
    assert len(recorder.taken) == 2 * TURN + 1


def test_a_delivery_that_failed_in_the_turn_of_another_stream_gets_its_own_message(
    tenant: Tenant, other: Tenant, recorder: Recorder, messages: list[tuple[str, ...]]
) -> None:
    busy, quiet = burst(tenant, 2 * TURN), burst(other, 1)
    delivering.deliver_lane(busy.pk, f"user:{tenant.pk}-0")
    recorder.answers[f"user:{other.pk}-0"] = [TransientFailure("busy")]
    messages.clear()

    delivering.deliver_lane(busy.pk, f"user:{tenant.pk}-{TURN}")

    assert messages == [(nudges.DELIVER, busy.pk, f"user:{tenant.pk}-{TURN}"), (nudges.DELIVER, quiet.pk, f"user:{other.pk}-0")]


def test_streams_with_many_events_and_with_one_event_get_turns_in_rotation(
    tenant: Tenant, other: Tenant, recorder: Recorder, messages: list[tuple[str, ...]]
) -> None:
    more = [TenantFactory.create(id=f"{tenant.pk}-{name}", name=name, host=f"{name}.{tenant.pk}.example.test") for name in "cd"]
    bursts = [burst(one, 4 * TURN) for one in (tenant, *more)]
    burst(other, 1)
    messages += [(nudges.DELIVER, bursts[0].pk, f"user:{tenant.pk}-{number}") for number in range(4 * TURN)]

    for _ in range(4):
        run_next(messages)

    served = [key.removeprefix("user:").rpartition("-")[0] for key, _, _ in recorder.taken]
    assert sorted(set(served)) == sorted([tenant.pk, *(one.pk for one in more), other.pk])
    assert len(served) == 3 * TURN + 1


def test_a_short_turn_ends_without_a_search_for_other_streams(
    tenant: Tenant, other: Tenant, recorder: Recorder, messages: list[tuple[str, ...]]
) -> None:
    quiet = burst(tenant, 1)
    burst(other, 1)
    delivering.deliver_lane(quiet.pk, f"user:{tenant.pk}-0")

    assert fairness.rota().more_urgent(quiet.pk) is None


def test_held_and_disabled_streams_get_no_turn(tenant: Tenant, other: Tenant, recorder: Recorder) -> None:
    held, disabled = burst(other, 1), burst(other, 1)
    EventStream.objects.of(other.pk).filter(pk=held.pk).update(held_since="2026-01-01T00:00:00Z")
    EventStream.objects.of(other.pk).filter(pk=disabled.pk).update(status="disabled")
    rota = Rota()
    rota.note_turn("est_busy", is_full=True)

    assert rota.more_urgent("est_busy") is None
    assert fetch_all(lane_rows.WAITING_STREAMS, {"patience": 0.0, "probe": False}) == []
