"""Sending nudges never raises an error and never blocks the caller, even if the broker does not answer or is unreachable."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from celery import Celery, current_app
from pytest_django.fixtures import Settings

from foundation.memory.outage_guard import OutageGuard
from provisioning.engine import nudges
from tests.deadlines import eventually, own_time


@pytest.fixture(autouse=True)
def _fresh(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DELIVERY_NUDGES_ENABLED = True
    monkeypatch.setattr(nudges, "_guard", OutageGuard(30.0))
    monkeypatch.setattr(nudges, "_nudgers", {})


@pytest.fixture
def silent_broker() -> Iterator[str]:
    """Yield the URL of a server that accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"


def _app(url: str) -> Celery:
    app = Celery("nudges", broker=url, set_as_current=False)
    app.conf.update(broker_transport_options=current_app.conf.broker_transport_options, task_publish_retry=False)
    return app


def test_a_hanging_broker_blocks_no_caller_and_stops_nudges_for_a_while(silent_broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nudges, "current_app", _app(silent_broker))
    with own_time() as posting:
        nudges.dispatch_numbered("t-one", 1)
    assert posting.seconds < 0.2
    eventually(nudges.is_silent, seconds=10)
    with own_time() as sending:
        assert not nudges.send(nudges.DISPATCH, "t-one")
    assert sending.seconds < 0.05


def test_publishing_to_a_hanging_broker_takes_at_most_a_few_seconds(silent_broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nudges, "current_app", _app(silent_broker))
    with own_time() as sending:
        assert not nudges.send(nudges.DISPATCH, "t-one")
    assert sending.seconds < 5


def test_publishing_to_an_unreachable_broker_raises_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setattr(nudges, "current_app", _app(f"redis://127.0.0.1:{unused.getsockname()[1]}/0"))

        assert not nudges.send(nudges.DISPATCH, "t-one")

    assert nudges.is_silent()


def test_equal_messages_that_wait_together_are_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, ...]] = []

    def slow_send(*message: str) -> None:
        sent.append(message)
        time.sleep(0.05)

    monkeypatch.setattr(nudges, "send", slow_send)
    for _ in range(100):
        nudges.post(nudges.DISPATCH, "t-one")
    nudges.post(nudges.DISPATCH, "t-two")

    eventually(lambda: (nudges.DISPATCH, "t-two") in sent)
    assert sent.count((nudges.DISPATCH, "t-one")) <= 2


def test_no_message_is_sent_if_nudges_are_disabled(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DELIVERY_NUDGES_ENABLED = False

    nudges.post(nudges.DISPATCH, "t-one")

    assert nudges._nudgers == {}


def test_a_few_lanes_get_one_message_each_and_many_lanes_share_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(nudges, "send", lambda _task, _stream, key: sent.append(key))

    nudges.send_into("est", [str(number) for number in range(5)])
    assert sent == ["0", "1", "2", "3", "4"]
    sent.clear()
    nudges.send_into("est", [str(number) for number in range(1000)])

    assert len(sent) == len(set(sent)) == 8 + 50
    assert current_app.conf.task_publish_retry is False
