"""Clients of Redis, at one address or behind Sentinel. They never repeat a command: a repetition would delay the caller."""

from __future__ import annotations

import redis
import redis.asyncio
import redis.asyncio.retry
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from foundation.memory.sentinel_address import is_sentinel_url, sentinel_address
from foundation.memory.sentinels import async_master_pool, master_pool


def redis_pool(url: str, *, connect_seconds: float | None = None, answer_seconds: float | None = None) -> redis.ConnectionPool:
    """Return a connection pool with these timeouts in seconds; None means REDIS_TIMEOUT_SECONDS."""
    timeouts = {"socket_timeout": _or_default(answer_seconds), "socket_connect_timeout": _or_default(connect_seconds)}
    retry = Retry(NoBackoff(), 0)
    if is_sentinel_url(url):
        return master_pool(sentinel_address(url), retry=retry, **timeouts)
    return redis.ConnectionPool.from_url(url, retry=retry, **timeouts)


def redis_client(url: str, *, connect_seconds: float | None = None, answer_seconds: float | None = None) -> redis.Redis:
    """Return a client with the timeouts of `redis_pool`."""
    return redis.Redis.from_pool(redis_pool(url, connect_seconds=connect_seconds, answer_seconds=answer_seconds))


def async_redis_client(url: str, *, connect_seconds: float | None = None, waits_for_messages: bool = False) -> redis.asyncio.Redis:
    """Return a client for an event loop with REDIS_TIMEOUT_SECONDS per command. A client that waits for messages has no timeout."""
    answer_seconds = None if waits_for_messages else settings.REDIS_TIMEOUT_SECONDS
    timeouts = {"socket_timeout": answer_seconds, "socket_connect_timeout": _or_default(connect_seconds)}
    retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
    if is_sentinel_url(url):
        return redis.asyncio.Redis.from_pool(async_master_pool(sentinel_address(url), retry=retry, **timeouts))
    return redis.asyncio.Redis.from_pool(redis.asyncio.ConnectionPool.from_url(url, retry=retry, **timeouts))


def _or_default(seconds: float | None) -> float:
    return float(settings.REDIS_TIMEOUT_SECONDS if seconds is None else seconds)
