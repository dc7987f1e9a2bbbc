"""Kombu's transports for Redis, Redis behind Sentinel and RabbitMQ, each of which drops messages that no process of the service wrote."""

from __future__ import annotations

import base64
import logging
from typing import Any

import redis
from django.conf import settings
from kombu.transport import TRANSPORT_ALIASES, pyamqp
from kombu.transport.redis import Channel, QoS, SentinelChannel, SentinelTransport, Transport

from config.task_messages import is_task_message
from foundation.memory.sentinel_address import sentinel_address
from foundation.memory.sentinels import EncryptedMasterConnection, MasterConnection, master_pool

logger = logging.getLogger(__name__)


def is_own(message: Any, queue: str | None) -> bool:
    """Tell whether a process of this service wrote the message; log it otherwise."""
    from config.celery import app  # noqa: PLC0415  (it registers these transports)

    is_known = is_task_message(message, app.tasks)
    if not is_known:
        logger.error("a message in the queue %s was dropped: no process of this service wrote it", queue)
    return is_known


class ReleasingQoS(QoS):
    """Counts a message as acknowledged even if the request that acknowledges it fails at Redis. Redis then delivers it again, which is safe
    for every task.

    kombu itself would count the message as unacknowledged for ever. A worker with the maximum number of unacknowledged messages does not
    read from its connection. So after this number of failed acknowledgments, the worker would never read again.
    """

    def ack(self, delivery_tag: str) -> None:
        try:
            super().ack(delivery_tag)
        except (redis.RedisError, OSError):
            self._quick_ack(delivery_tag)  # type: ignore[attr-defined]  # kombu's types leave it out
            raise

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:  # noqa: FBT001, FBT002  (kombu's signature)
        try:
            super().reject(delivery_tag, requeue=requeue)
        except (redis.RedisError, OSError):
            self._quick_ack(delivery_tag)  # type: ignore[attr-defined]  # kombu's types leave it out
            raise


class _ReadsJson(Channel):
    """Skips messages that are not JSON."""

    QoS = ReleasingQoS

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]  # kombu's types leave it out
        except (ValueError, RecursionError) as error:
            # The message is already removed from the queue. Its text must not be logged.
            logger.error("a message that cannot be read was dropped: %s", type(error).__name__)  # noqa: TRY400  (a stack trace would quote the text)
            return True


class _DeliversOwn(Transport):
    """Drops messages which no process of the service has written."""

    def _deliver(self, message: Any, queue: str | None) -> None:
        if is_own(message, queue):
            super()._deliver(message, queue)


class CheckedChannel(_ReadsJson):
    """A channel of one Redis server."""


class CheckedTransport(_DeliversOwn):
    """The transport for one Redis server."""

    Channel = CheckedChannel


class CheckedSentinelChannel(_ReadsJson, SentinelChannel):
    """A channel that finds its server like every other client of the service, by the URL in the settings."""

    def _sentinel_managed_pool(self, asynchronous: bool = False) -> redis.ConnectionPool:  # noqa: FBT001, FBT002  (kombu's signature)
        address = sentinel_address(settings.BROKER_URL or settings.REDIS_URL)
        # The method `_connparams` of kombu derives the class of its connections from `connection_class`.
        self.connection_class = EncryptedMasterConnection if address.is_encrypted else MasterConnection
        options = self._connparams(asynchronous)  # type: ignore[attr-defined]  # kombu's types leave it out
        for name in ("host", "port", "username", "password", "db"):
            options.pop(name, None)
        pool = master_pool(address, **options)
        if asynchronous:
            self._async_sentinel_manager = pool.sentinel_manager
        else:
            self._sentinel_manager = pool.sentinel_manager
        return pool


class CheckedSentinelTransport(_DeliversOwn, SentinelTransport):
    """The transport for the master that sentinels name."""

    Channel = CheckedSentinelChannel


class CheckedAmqpChannel(pyamqp.Channel):
    """A channel of RabbitMQ that rejects messages which no process of the service has written."""

    def _on_basic_deliver(
        self,
        consumer_tag: str,
        delivery_tag: int,
        redelivered: bool,  # noqa: FBT001
        exchange: str,
        routing_key: str,
        message: Any,
    ) -> None:
        if is_own(_as_in_redis(message, delivery_tag, exchange, routing_key), routing_key):
            super()._on_basic_deliver(consumer_tag, delivery_tag, redelivered, exchange, routing_key, message)  # type: ignore[misc]  # py-amqp has no types
        else:
            self.basic_reject(delivery_tag, requeue=False)


class CheckedAmqpConnection(pyamqp.Connection):
    """A connection with checked channels."""

    Channel = CheckedAmqpChannel


class CheckedAmqpTransport(pyamqp.Transport):
    """The transport for RabbitMQ."""

    Connection = CheckedAmqpConnection


class CheckedAmqpsTransport(pyamqp.SSLTransport):
    """The transport for RabbitMQ with TLS."""

    Connection = CheckedAmqpConnection


def use_checked_transports() -> None:
    """Use the checked transports for every kind of broker that the settings accept."""
    kinds = {
        CheckedTransport: ("redis", "rediss"),
        CheckedSentinelTransport: ("sentinel",),
        CheckedAmqpTransport: ("amqp", "pyamqp"),
        CheckedAmqpsTransport: ("amqps",),
    }
    for kind, schemes in kinds.items():
        for scheme in schemes:
            TRANSPORT_ALIASES[scheme] = f"{__name__}:{kind.__name__}"


def _as_in_redis(message: Any, delivery_tag: int, exchange: str, routing_key: str) -> dict[str, Any]:
    """Return a message of RabbitMQ in the form in which `is_task_message` reads it."""
    body = message.body if isinstance(message.body, bytes) else str(message.body).encode()
    place = {"exchange": exchange, "routing_key": routing_key}
    return {
        "body": base64.b64encode(body).decode(),
        "content-type": message.properties.get("content_type"),
        "content-encoding": message.properties.get("content_encoding"),
        "headers": message.headers,
        "properties": {"delivery_info": place, "delivery_tag": str(delivery_tag), "body_encoding": "base64"},
    }
