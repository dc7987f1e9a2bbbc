"""The checks of delivery invariants accept a correct history and report every planted fault. The tests need no worker."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from events.models import EventStream
from identity.models import Tenant
from provisioning.models import Attempt, DeadLetter, Delivery
from tests.factories.models.provisioning import AttemptFactory, DeadLetterFactory, DeliveryFactory, LaneFactory
from tests.faults.delivery_invariants import assert_sound
from tests.provisioning.engine.logs import append_events, make_stream

USERS = ("user:ada", "user:bob")


@dataclass
class History:
    """A stream whose deliveries have ended, and the records of its destination."""

    stream: EventStream
    directory: Path
    deliveries: list[Delivery]

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.directory / "events").read_text().splitlines()]

    def rewrite(self, lines: list[dict[str, Any]]) -> None:
        (self.directory / "events").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def history(tenant: Tenant, tmp_path: Path) -> History:
    """Six events of two users, delivered in order. The second of the six has a failed attempt, and the last is a dead letter."""
    events = append_events(tenant, [*USERS] * 3)
    stream = make_stream(tenant, position=len(events))
    deliveries, lines = [], []
    for position, event in enumerate(events, 1):
        state = "dead" if event is events[-1] else "delivered"
        tries = 2 if position == 2 else 1
        shared = {"tenant_id": tenant.pk, "event_id": event.event_id, "key": event.root, "position": position}
        delivery = DeliveryFactory.create(**shared, stream_id=stream.pk, event=event.pk, state=state, attempts=tries)
        deliveries.append(delivery)
        for number in range(1, tries + 1):
            outcome = "delivered" if state == "delivered" and number == tries else "failed"
            AttemptFactory.create(delivery=delivery, tenant_id=tenant.pk, number=number, outcome=outcome)
            line = {"key": event.root, "number": position, "event": event.event_id, "attempt": number, "pid": 1}
            lines += [{**line, "step": step} for step in (("start", "end") if outcome == "delivered" else ("start",))]
        if state == "dead":
            DeadLetterFactory.create(delivery=delivery, tenant_id=tenant.pk, stream_id=stream.pk, body=b"{}", reason="exhausted")
    made = History(stream, tmp_path, deliveries)
    made.rewrite(lines)
    return made


def test_a_correct_history_passes(history: History) -> None:
    assert_sound(history.stream, history.directory, crashes=0)


def _lost_by_the_destination(history: History) -> None:
    history.rewrite([line for line in history.lines if (line["event"], line["step"]) != (history.deliveries[0].event_id, "end")])


def _lost_by_dispatch(history: History) -> None:
    Attempt.objects.filter(delivery=history.deliveries[0]).delete()
    history.deliveries[0].delete()


def _never_settled(history: History) -> None:
    Delivery.objects.filter(pk=history.deliveries[0].pk).update(state="todo")


def _still_waiting(history: History) -> None:
    LaneFactory.create(tenant_id=history.stream.tenant_id, stream_id=history.stream.pk, key=USERS[0])


def _doubled(history: History) -> None:
    history.rewrite([*history.lines, next(line for line in history.lines if line["step"] == "end")])


def _disordered(history: History) -> None:
    of_one = [line for line in history.lines if line["key"] == USERS[0]]
    others = [line for line in history.lines if line["key"] != USERS[0]]
    history.rewrite([*of_one[2:4], *of_one[:2], *of_one[4:], *others])


def _wrong_user(history: History) -> None:
    first = history.deliveries[0].event_id
    history.rewrite([{**line, "key": USERS[1]} if line["event"] == first else line for line in history.lines])


def _stale_fence(history: History) -> None:
    # The worker of the first claim stored an outcome although its lease had expired. The worker of the second claim stored an outcome, too.
    Attempt.objects.filter(delivery=history.deliveries[1], number=1).update(outcome="delivered")


def _attempt_not_counted(history: History) -> None:
    Delivery.objects.filter(pk=history.deliveries[1].pk).update(attempts=1)


def _attempt_without_an_outcome(history: History) -> None:
    Attempt.objects.filter(delivery=history.deliveries[1], number=1).delete()


def _dead_without_a_letter(history: History) -> None:
    DeadLetter.objects.filter(stream_id=history.stream.pk).delete()


def _letter_without_its_event(history: History) -> None:
    DeadLetter.objects.filter(stream_id=history.stream.pk).update(body=None)


def _letter_without_a_reason(history: History) -> None:
    DeadLetter.objects.filter(stream_id=history.stream.pk).update(reason="")


def _superseded_without_a_reason(history: History) -> None:
    Delivery.objects.filter(pk=history.deliveries[0].pk).update(state="superseded", reason="")


@pytest.mark.whole
@pytest.mark.parametrize(
    "plant",
    [
        _lost_by_the_destination,
        _lost_by_dispatch,
        _never_settled,
        _still_waiting,
        _doubled,
        _disordered,
        _wrong_user,
        _stale_fence,
        _attempt_not_counted,
        _attempt_without_an_outcome,
        _dead_without_a_letter,
        _letter_without_its_event,
        _letter_without_a_reason,
        _superseded_without_a_reason,
    ],
)
def test_a_planted_fault_is_reported(history: History, plant: Callable[[History], None]) -> None:
    plant(history)
    with pytest.raises(AssertionError):
        assert_sound(history.stream, history.directory, crashes=0)


def test_one_repeated_delivery_is_allowed_after_a_crash(history: History) -> None:
    _doubled(history)
    assert_sound(history.stream, history.directory, crashes=1)
