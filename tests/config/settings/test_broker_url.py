"""The spelling of `REDIS_URL` for Celery's transport."""

from __future__ import annotations

from kombu import Connection

from config.settings.queue import broker_url


def test_a_tcp_url_stays_as_it_is() -> None:
    assert broker_url("redis://:secret@host:6380/2") == "redis://:secret@host:6380/2"


def test_a_socket_becomes_the_transport_that_celery_opens() -> None:
    connection = Connection(broker_url("unix:///run/private/redis.sock?db=3"))

    assert connection.transport_cls == "redis"
    assert connection.hostname == "socket:///run/private/redis.sock?virtual_host=3"
