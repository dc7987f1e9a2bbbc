"""Connections to Redis for what must never wait for it."""

from __future__ import annotations

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

_SECONDS = 0.2


def redis_pool(url: str) -> redis.ConnectionPool:
    """Return connections that fail at once instead of waiting."""
    return redis.ConnectionPool.from_url(url, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS, retry=Retry(NoBackoff(), 0))
