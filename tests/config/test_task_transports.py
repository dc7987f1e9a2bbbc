"""The transport of each kind of broker checks the messages before a worker reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis
from amqp.basic_message import Message
from kombu import Connection, Producer, Queue

from config.celery import app
from config.settings.queue import broker_url
from config.task_messages import is_task_message
from config.task_transports import (
    CheckedAmqpsTransport,
    CheckedAmqpTransport,
    CheckedSentinelTransport,
    CheckedTransport,
    _as_in_redis,
)
from identity.tasks import RUN_JOB
from tests.faults.conftest import RedisServer


@pytest.mark.parametrize(
    ("url", "transport"),
    [
        ("redis://127.0.0.1/0", CheckedTransport),
        ("rediss://127.0.0.1/0", CheckedTransport),
        ("unix:///run/redis.sock", CheckedTransport),
        ("redis+sentinel://127.0.0.1/main", CheckedSentinelTransport),
        ("rediss+sentinel://127.0.0.1/main", CheckedSentinelTransport),
        ("amqp://127.0.0.1//", CheckedAmqpTransport),
        ("amqps://127.0.0.1//", CheckedAmqpsTransport),
    ],
)
def test_every_kind_of_broker_uses_the_check(url: str, transport: type) -> None:
    with Connection(broker_url(url)) as connection:
        assert connection.get_transport_cls() is transport


def received(body: Any, **headers: Any) -> dict[str, Any]:
    """Return a message of RabbitMQ as the check reads it."""
    own = {"task": RUN_JOB, "id": "5", "retries": 0, "timelimit": [None, None]}
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    message = Message(text, content_type="application/json", content_encoding="utf-8", application_headers={**own, **headers})
    return _as_in_redis(message, 7, "", "work")


def test_a_message_of_rabbitmq_is_read() -> None:
    assert is_task_message(received([["a-job"], {}, {"callbacks": None}]), app.tasks)


@pytest.mark.parametrize("settle", ["ack", "reject"])
def test_a_message_that_cannot_be_acknowledged_does_not_occupy_the_worker(settle: str, tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    try:
        with Connection(server.url) as connection:
            channel: Any = connection.channel()
            queue = Queue("work", channel=channel)
            queue.declare()
            channel.basic_qos(0, 1, False)
            Producer(channel).publish({}, routing_key="work")
            message = queue.get()
            assert not channel.qos.can_consume()
            server.process.kill()
            server.process.wait(10)

            with pytest.raises(redis.ConnectionError):
                getattr(message, settle)()

            assert channel.qos.can_consume()
    finally:
        server.close()


@pytest.mark.parametrize(
    "forged",
    [
        received([["a-job"], {}, {"callbacks": [{"task": "os.mkdir"}]}]),
        received(b"\x80\x04code"),
        received([["x" * 100_000], {}, {}]),
        received([["a-job"], {}, {}], task="os.mkdir"),
        received([["a-job"], {}, {}], compression="application/x-gzip"),
    ],
    ids=["a callback", "a pickle", "a large body", "another task", "a compressed body"],
)
def test_a_forged_message_of_rabbitmq_is_not_read(forged: dict[str, Any]) -> None:
    assert not is_task_message(forged, app.tasks)
