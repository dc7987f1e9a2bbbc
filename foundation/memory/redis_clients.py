"""Clients of Redis. None of them repeats a command: Redis holds nothing that is worth waiting for."""

from __future__ import annotations

import redis
import redis.asyncio
import redis.asyncio.retry
from redis.backoff import NoBackoff
from redis.retry import Retry

_SECONDS = 0.2


def redis_pool(url: str) -> redis.ConnectionPool:
    """Return connections that fail at once instead of waiting."""
    return redis.ConnectionPool.from_url(url, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS, retry=Retry(NoBackoff(), 0))


def redis_client(url: str, *, connect_seconds: float = _SECONDS, answer_seconds: float = _SECONDS) -> redis.Redis:
    """Return a client whose commands fail after these times."""
    return redis.Redis.from_url(url, socket_timeout=answer_seconds, socket_connect_timeout=connect_seconds, retry=Retry(NoBackoff(), 0))


def async_redis_client(url: str, *, connect_seconds: float = _SECONDS, answer_seconds: float | None = _SECONDS) -> redis.asyncio.Redis:
    """Return a client of an event loop whose commands fail after these times; `answer_seconds` None waits without limit."""
    return redis.asyncio.Redis.from_url(
        url,
        socket_timeout=answer_seconds,
        socket_connect_timeout=connect_seconds,
        retry=redis.asyncio.retry.Retry(NoBackoff(), 0),
    )
