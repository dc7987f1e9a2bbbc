"""A worker reads only messages in the format in which Celery writes them for our tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection, Producer
from kombu.transport.memory import Channel

from authapi import tasks as _authapi_tasks  # noqa: F401  (it registers its tasks)
from config.celery import app
from config.task_messages import is_task_message
from identity.tasks import RUN_JOB
from provisioning import tasks as _provisioning_tasks  # noqa: F401 (it registers its tasks)
from provisioning.engine import nudges
from tests.faults.test_forged_messages import forgeries, message


def written(task: str, arguments: list[Any], **options: Any) -> dict[str, Any]:
    """Return a message in the format in which Celery writes it to the queue."""
    sent: list[dict[str, Any]] = []

    class Kept(Channel):
        def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
            sent.append(message)

    with Connection("memory://") as connection:
        producer = Producer(Kept(connection.transport))
        app.send_task(task, arguments, producer=producer, **options)
    # Convert the message to JSON and back: a worker gets it from Redis in this form.
    return dict(json.loads(json.dumps(sent[-1])))


@pytest.mark.parametrize("task", [RUN_JOB, nudges.DELIVER, nudges.DISPATCH, nudges.PROBE, nudges.ALERT, "authapi.prune"])
@pytest.mark.parametrize("options", [{}, {"countdown": 30}, {"expires": 60}, {"retries": 3}, {"priority": 5}], ids=str)
def test_a_message_that_celery_writes_for_a_task_is_read(task: str, options: dict[str, Any]) -> None:
    sent = written(task, ["an-id", "another"], **options)
    assert is_task_message(sent, app.tasks)
    # If a worker was killed before it acknowledged a message, the message arrives again, with the member `redelivered`.
    sent["headers"]["redelivered"] = sent["properties"]["delivery_info"]["redelivered"] = True
    assert is_task_message(sent, app.tasks)


def test_a_forged_message_is_not_read(tmp_path: Path) -> None:
    passed = []
    for forged in forgeries(tmp_path / "marker"):
        try:
            read = json.loads(forged)
        except (ValueError, RecursionError):
            continue
        if is_task_message(read, app.tasks):
            passed.append((read["headers"]["task"], len(forged)))
    # The messages that passed name one of our tasks, but with unknown ids. So the task finds no row.
    assert {name for name, _ in passed} <= {RUN_JOB, nudges.ALERT, nudges.DELIVER}
    assert all(size < 70_000 for _, size in passed)


@pytest.mark.parametrize("limits", [[10**9, 10**9], [True, None], [0, None], 30])
def test_a_message_may_not_set_another_time_limit(limits: Any) -> None:
    sent = json.loads(message(RUN_JOB, ["x"], headers={"timelimit": limits}))
    assert not is_task_message(sent, app.tasks)


@pytest.mark.parametrize("retries", [-1, 1_000_001, True, "3", 1.5, None])
def test_a_message_with_an_impossible_number_of_retries_is_not_read(retries: Any) -> None:
    sent = written(RUN_JOB, ["an-id"])
    assert is_task_message({**sent, "headers": {**sent["headers"], "retries": 1_000_000}}, app.tasks)
    assert not is_task_message({**sent, "headers": {**sent["headers"], "retries": retries}}, app.tasks)
