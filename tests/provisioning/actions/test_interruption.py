"""An installed action is interrupted at its deadline, and the timer of the process is restored afterwards."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pytest

from identity.models import Tenant
from provisioning.actions.event_stream import v1
from provisioning.actions.event_stream.v1.objects import Api, Event
from provisioning.actions.setups import draft_setup
from provisioning.engine.runner import run_action
from provisioning.links.rows import RunLinks
from provisioning.models import Action
from provisioning.runs.failures import TransientFailure
from provisioning.runs.interruption import TimeLimit, TimeSpent
from provisioning.services.actions import create_action
from tests.factories.scim_runs import envelope


class Endless:
    """An installed action that does not end. The secret `WAY` selects what it does: run a loop, sleep, or catch every error."""

    def on_execute_event_stream(self, event: Event, api: Api) -> None:
        way = event.secrets["WAY"]
        while way != "swallow":
            time.sleep(30) if way == "sleep" else None
        while True:
            try:
                time.sleep(30)
            except Exception:  # noqa: S110 (careless code does this)
                pass


@pytest.mark.parametrize("way", ["loop", "sleep", "swallow"])
def test_an_installed_action_that_does_not_end_is_interrupted(tenant: Tenant, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(Endless, "__module__", f"{v1.__name__}.endless")
    monkeypatch.setattr(v1, "Endless", Endless, raising=False)
    action = create_action(tenant_id=tenant.pk, name="own", entry_point_path=f"{v1.__name__}.Endless", secrets={"WAY": way})
    before = signal.getsignal(signal.SIGALRM)
    started = time.monotonic()
    setup = draft_setup(action)
    with pytest.raises(TransientFailure, match="was interrupted"):
        run_action(setup, envelope("user.created"), attempt=1, deadline_seconds=0.3, correlation_id="x", links=RunLinks(setup, 1))
    assert time.monotonic() - started < 5
    assert signal.getsignal(signal.SIGALRM) is before
    # The service has closed the interrupted database connection, and a new connection works.
    assert Action.objects.of(tenant.pk).filter(pk=action.pk).exists()


def test_an_action_that_ends_in_time_is_not_interrupted_and_the_timer_is_removed() -> None:
    before = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    with TimeLimit(5):
        assert signal.getsignal(signal.SIGALRM) is not before[0]
    assert signal.getsignal(signal.SIGALRM) is before[0]
    assert signal.getitimer(signal.ITIMER_REAL)[0] <= before[1][0]


def test_a_timer_that_other_code_has_set_continues_after_an_interruption() -> None:
    heard: list[Any] = []
    handler = signal.signal(signal.SIGALRM, lambda *said: heard.append(said))
    left, interval = signal.setitimer(signal.ITIMER_REAL, 20)
    try:
        with pytest.raises(TimeSpent), TimeLimit(0.05):
            time.sleep(5)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] < 20
        assert heard == []
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, interval)
        signal.signal(signal.SIGALRM, handler)


def test_an_interruption_that_the_action_catches_is_raised_again() -> None:
    caught = []

    def stubborn() -> None:
        while True:
            try:
                time.sleep(5)
            except TimeSpent as error:
                caught.append(error)
                if len(caught) == 3:
                    raise

    with pytest.raises(TimeSpent), TimeLimit(0.05):
        stubborn()
    assert len(caught) == 3


def test_code_after_a_block_that_ends_at_the_deadline_is_not_interrupted() -> None:
    before = signal.getsignal(signal.SIGALRM)
    for _ in range(300):
        limit = TimeLimit(0.001)
        try:
            with limit:
                deadline = time.perf_counter() + 0.001
                while time.perf_counter() < deadline:
                    pass
        except TimeSpent:
            limit.stop()
        assert signal.getsignal(signal.SIGALRM) is before


def test_a_time_limit_in_a_thread_other_than_the_main_thread_interrupts_nothing() -> None:
    said: list[str] = []

    def work() -> None:
        with TimeLimit(0.01):
            time.sleep(0.1)
        said.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert said == ["done"]
