"""Turns of requests that wait for a server of a tenant's choice: few at a time, one of a tenant, so that no tenant takes every thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

# A web process has few threads for requests, and a slow server holds one for seconds.
MOST_AT_ONCE = 3

_waiting: set[str] = set()
_lock = Lock()


class NoTurn(Exception):
    """Another request of the tenant waits already, or enough of others do."""


@contextmanager
def turn(tenant_id: str) -> Iterator[None]:
    """Count one that waits in this process. Raises `NoTurn` at once."""
    with _lock:
        if tenant_id in _waiting or len(_waiting) >= MOST_AT_ONCE:
            raise NoTurn
        _waiting.add(tenant_id)
    try:
        yield
    finally:
        with _lock:
            _waiting.discard(tenant_id)
