"""Threads for the blocking work of frequently used endpoints: queries, signatures, counts of requests, and waits for password hashes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from django.db import connection

from foundation.memory.ttl_cache import Cold, Remembered
from foundation.secrets.hashing import refuse_in_this_thread
from foundation.tracing import spans as tracing

Result = TypeVar("Result")
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

# Signing releases the interpreter lock, so there is one thread per core, and one more thread that waits for Redis or the database.
# More threads only contend for the lock: with four more threads, a process issued a tenth fewer tokens.
_THREADS = (os.cpu_count() or 1) + 1


# Threads for requests that wait for a password hash: many logins at once must not delay tokens and streams.
_WAITING_THREADS = 4


# The running loads of `remembered`, each by its cache (`memory`) and its key.
_loads: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, asyncio.Future[Any]]] = WeakKeyDictionary()


@lru_cache(maxsize=2)
def _threads(*, is_slow: bool) -> ThreadPoolExecutor:
    if is_slow:
        return ThreadPoolExecutor(_WAITING_THREADS, thread_name_prefix="authapi-slow")
    # Hashing a password in one of these threads raises an error: one request fails, instead of delaying all others.
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="authapi", initializer=refuse_in_this_thread)


async def run(work: Callable[[], Result], *, is_slow: bool = False) -> Result:
    """Run `work` in a thread; slow work has separate threads. The database connection of `work` returns to the pool."""
    return await asyncio.get_running_loop().run_in_executor(_threads(is_slow=is_slow), and_give_back, tracing.carried(work))


async def remembered(memory: Remembered[Key, Value], key: Key) -> Value:
    """Return the value from `memory`, at once if it is cached. Concurrent calls for a missing value wait for one load in one thread."""
    with suppress(Cold):
        return memory.warm(key)
    loads = _loads.setdefault(asyncio.get_running_loop(), {})
    load = loads.get((memory, key))
    if load is None:
        load = loads[memory, key] = asyncio.ensure_future(run(partial(memory.get, key)))
        load.add_done_callback(partial(_has_loaded, loads, (memory, key)))
    # Shielded: the cancellation of one caller must not cancel the load, for which other callers may wait.
    return await asyncio.shield(load)


def _has_loaded(loads: dict[Any, asyncio.Future[Any]], place: Any, load: asyncio.Future[Any]) -> None:
    del loads[place]
    if not load.cancelled():
        # If every caller was canceled, no caller retrieves the exception, and asyncio would log this. So retrieve the exception here.
        load.exception()


def and_give_back(work: Callable[[], Result]) -> Result:
    """Run `work` in this thread; its database connection returns to the pool."""
    try:
        return work()
    finally:
        if connection.connection is not None:
            # Django makes the same call at the end of a request.
            connection.close_if_unusable_or_obsolete()
