"""Limits concurrent requests to servers that tenants choose: a few at a time, one per tenant, so that no tenant occupies every
thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

# A web process has few request threads, and a slow server occupies a thread for seconds.
MOST_AT_ONCE = 3

_waiting: set[str] = set()
_lock = Lock()


class NoTurn(Exception):
    """Another request of the tenant is waiting, or the maximum number of requests is waiting."""


@contextmanager
def turn(tenant_id: str) -> Iterator[None]:
    """Count a request of this process while it waits for a server. Raises `NoTurn` at once if the request would have to wait for others."""
    with _lock:
        if tenant_id in _waiting or len(_waiting) >= MOST_AT_ONCE:
            raise NoTurn
        _waiting.add(tenant_id)
    try:
        yield
    finally:
        with _lock:
            _waiting.discard(tenant_id)
