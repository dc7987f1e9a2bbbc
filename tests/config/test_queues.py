"""The queue of each message, and the queues that a worker reads."""

from __future__ import annotations

from config.celery import app
from identity.tasks import RUN_JOB
from provisioning.engine import nudges


def queue_of(task: str) -> str:
    return str(app.amqp.router.route({}, task)["queue"].name)


def test_deliveries_have_their_own_queue() -> None:
    assert queue_of(nudges.DELIVER) == "deliveries"
    assert {queue_of(task) for task in (RUN_JOB, nudges.DISPATCH, nudges.PROBE)} == {"work"}


def test_a_worker_reads_every_queue_to_which_the_service_writes() -> None:
    assert set(app.amqp.queues.consume_from) == {"work", "deliveries"}
    assert app.conf.broker_transport_options.get("queue_order_strategy", "round_robin") == "round_robin"
