"""Conversion of `REDIS_URL` for Celery's transport."""

from __future__ import annotations

from kombu import Connection

from config.settings.queue import broker_url


def test_a_tcp_url_is_unchanged() -> None:
    assert broker_url("redis://:secret@host:6380/2") == "redis://:secret@host:6380/2"


def test_a_unix_socket_url_is_converted_to_the_format_of_celery() -> None:
    connection = Connection(broker_url("unix:///run/private/redis.sock?db=3"))

    assert connection.transport_cls == "redis"
    assert connection.hostname == "socket:///run/private/redis.sock?virtual_host=3"
