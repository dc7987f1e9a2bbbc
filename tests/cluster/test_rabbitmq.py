"""RabbitMQ as the queue of the workers, configured only by `BROKER_URL`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kombu import Connection as BrokerConnection
from kombu import Producer

from identity.exports.exports import start_export
from identity.models import Connection, Tenant
from identity.tasks import RUN_JOB
from tests.cluster.rabbitmq import RabbitMQ, rabbitmq
from tests.deadlines import eventually
from tests.faults.conftest import RedisServer, directory, redis_server
from tests.faults.worker import Worker, assert_in_order, recorded
from tests.provisioning.engine.logs import append_events, make_stream

__all__ = ["directory", "redis_server"]

pytestmark = [pytest.mark.fault, pytest.mark.usefixtures("committed_db")]


@pytest.fixture
def broker() -> Iterator[RabbitMQ]:
    with rabbitmq() as running:
        yield running


def put(broker: RabbitMQ, queue: str, body: bytes, **headers: object) -> None:
    with BrokerConnection(broker.url) as connection:
        Producer(connection).publish(
            body, routing_key=queue, content_type="application/json", content_encoding="utf-8", headers=headers, retry=False
        )


def test_a_worker_reads_its_messages_from_rabbitmq_and_rejects_forged_messages(
    tenant: Tenant, database_connection: Connection, broker: RabbitMQ, redis_server: RedisServer, directory: Path
) -> None:
    worker = Worker(directory, redis_server.url, BROKER_URL=broker.url, concurrency=1)
    try:
        job = start_export(tenant_id=tenant.pk)
        forged = json.dumps([[job.pk], {}, {"callbacks": [{"task": "os.mkdir"}]}]).encode()
        put(broker, "work", forged, task=RUN_JOB, id="1", retries=0)
        put(broker, "work", b"\x80\x04code", task=RUN_JOB, id="2", retries=0)
        put(broker, "work", json.dumps([[job.pk], {}, {}]).encode(), task=RUN_JOB, id="3", retries=0)

        def is_done() -> bool:
            job.refresh_from_db()
            return bool(job.status == "completed")

        eventually(is_done, seconds=60)
        assert worker.log.count("no process of this service wrote it") == 2
        assert broker.url not in worker.log
    finally:
        worker.kill()


def test_no_delivery_is_lost_when_rabbitmq_is_killed(tenant: Tenant, broker: RabbitMQ, redis_server: RedisServer, directory: Path) -> None:
    make_stream(tenant)
    keys = [f"user:{tenant.pk}-{number}" for number in range(5)]
    worker = Worker(directory, redis_server.url, BROKER_URL=broker.url)
    try:
        append_events(tenant, keys * 10, data=[number for number in range(10) for _ in keys])
        eventually(lambda: len(recorded(directory, step="end")) >= 50, seconds=60)
        broker.kill()
        append_events(tenant, keys * 10, data=[number for number in range(10, 20) for _ in keys])
        broker.start()
        eventually(lambda: len(recorded(directory, step="end")) >= 100, seconds=90)
        assert_in_order(directory, dict.fromkeys(keys, 20))
    finally:
        worker.kill()
