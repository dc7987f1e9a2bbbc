"""The URL of the queue for Celery: the values of `BROKER_URL` or `REDIS_URL` that are converted, kept or refused."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from kombu import Connection

from config.settings.queue import broker_url


def test_a_tcp_url_is_unchanged() -> None:
    assert broker_url("redis://:secret@host:6380/2") == "redis://:secret@host:6380/2"


def test_a_unix_socket_url_is_converted_to_the_format_of_celery() -> None:
    connection = Connection(broker_url("unix:///run/private/redis.sock?db=3"))

    assert connection.transport_cls == "redis"
    assert connection.hostname == "socket:///run/private/redis.sock?virtual_host=3"


def test_the_broker_url_of_sentinels_shows_no_password() -> None:
    assert broker_url("rediss+sentinel://app:canary@one:26379,two:26379/main/2") == "sentinel://sentinels/2"


@pytest.mark.parametrize("url", ["amqp://app:secret@rabbit:5672/identity", "amqps://app:secret@rabbit/identity"])
def test_a_rabbitmq_url_is_unchanged(url: str) -> None:
    assert broker_url(url) == url


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("sqs://key:canary@", "found the scheme 'sqs'"),
        ("redis+sentinel://app:canary@one", "names no sentinel or no master"),
    ],
)
def test_an_unsupported_broker_url_is_refused_without_showing_its_password(url: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=sentence) as refused:
        broker_url(url)

    assert "canary" not in str(refused.value)
