"""Clients of Redis. None of them repeats a command: no value in Redis is worth the delay."""

from __future__ import annotations

import redis
import redis.asyncio
import redis.asyncio.retry
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry


def redis_pool(url: str) -> redis.ConnectionPool:
    """Return connections whose commands fail after REDIS_TIMEOUT_SECONDS."""
    seconds = settings.REDIS_TIMEOUT_SECONDS
    return redis.ConnectionPool.from_url(url, socket_timeout=seconds, socket_connect_timeout=seconds, retry=Retry(NoBackoff(), 0))


def redis_client(url: str, *, connect_seconds: float | None = None, answer_seconds: float | None = None) -> redis.Redis:
    """Return a client with these timeouts in seconds; None means REDIS_TIMEOUT_SECONDS."""
    return redis.Redis.from_url(
        url,
        socket_timeout=_or_default(answer_seconds),
        socket_connect_timeout=_or_default(connect_seconds),
        retry=Retry(NoBackoff(), 0),
    )


def async_redis_client(url: str, *, connect_seconds: float | None = None, waits_for_messages: bool = False) -> redis.asyncio.Redis:
    """Return a client for an event loop with REDIS_TIMEOUT_SECONDS per command. A client that waits for messages has no timeout."""
    return redis.asyncio.Redis.from_url(
        url,
        socket_timeout=None if waits_for_messages else settings.REDIS_TIMEOUT_SECONDS,
        socket_connect_timeout=_or_default(connect_seconds),
        retry=redis.asyncio.retry.Retry(NoBackoff(), 0),
    )


def _or_default(seconds: float | None) -> float:
    return float(settings.REDIS_TIMEOUT_SECONDS if seconds is None else seconds)
