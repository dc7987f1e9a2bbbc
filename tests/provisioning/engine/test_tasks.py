"""The configuration of Celery, and tasks that run again after exactly the requested delay."""

from __future__ import annotations

from typing import Any

import pytest
from celery import Task
from celery.exceptions import Retry

from config.celery import app
from provisioning import tasks
from provisioning.engine import delivering
from provisioning.engine.retrying import RetryLater


def test_tasks_are_acknowledged_after_they_have_run_and_no_results_are_stored() -> None:
    conf = app.conf
    assert (conf.task_acks_late, conf.task_reject_on_worker_lost, conf.worker_prefetch_multiplier) == (True, True, 1)
    assert conf.task_ignore_result
    assert conf.result_backend is None
    assert conf.accept_content == ["json"]
    assert (conf.task_time_limit, conf.task_soft_time_limit, conf.task_publish_retry) == (30, 20, False)
    seconds = 120
    assert conf.broker_transport_options["visibility_timeout"] == seconds
    assert conf.result_backend_transport_options["visibility_timeout"] == seconds
    assert conf.get("visibility_timeout") == seconds


def test_the_lease_of_a_lane_is_longer_than_any_turn_or_task(settings: Any) -> None:
    turn = delivering.TURN_SECONDS + settings.DELIVERY_BUDGET_SECONDS
    limits = [turn, app.conf.task_soft_time_limit, app.conf.task_time_limit, settings.DELIVERY_LEASE_SECONDS]
    assert [*limits, app.conf.get("visibility_timeout")] == sorted({*limits, app.conf.get("visibility_timeout")})


@pytest.mark.parametrize("seconds", [0.25, 7.0, 30.0])
def test_the_task_of_a_paused_lane_runs_again_after_exactly_the_pause(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def pause(*_: object) -> None:
        raise RetryLater(seconds)

    def retry(_self: object, *_args: object, **options: Any) -> None:
        asked.append(options)
        raise Retry

    monkeypatch.setattr(delivering, "deliver_lane", pause)
    monkeypatch.setattr(Task, "retry", retry)

    with pytest.raises(Retry):
        tasks.deliver("est_x", "user:a")

    (options,) = asked
    assert options["countdown"] == seconds
    assert options.get("max_retries") is None
    assert tasks.deliver.max_retries is None
