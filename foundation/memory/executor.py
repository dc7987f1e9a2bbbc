"""The few threads in which hot endpoints read, sign, count and wait for hashes, so that the event loop stays free."""

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

Result = TypeVar("Result")
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

# Signing releases the interpreter lock, so each core has a thread, and one more waits for Redis or the database meanwhile.
# More of them only take turns for that lock: with four more, a tenth fewer tokens were made.
_THREADS = (os.cpu_count() or 1) + 1


# Requests that wait for a password to be hashed wait here: a flood of logins holds up neither tokens nor streams.
_WAITING_THREADS = 4


# What is being read for `remembered`, by memory and key.
_loads: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, asyncio.Future[Any]]] = WeakKeyDictionary()


@lru_cache(maxsize=2)
def _threads(*, is_slow: bool) -> ThreadPoolExecutor:
    if is_slow:
        return ThreadPoolExecutor(_WAITING_THREADS, thread_name_prefix="authapi-slow")
    # A request that got here in spite of its password fails instead of making all others wait.
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="authapi", initializer=refuse_in_this_thread)


async def run(work: Callable[[], Result], *, is_slow: bool = False) -> Result:
    """Run `work` in one of the threads, or of those for slow work; a database connection it used goes back to the pool."""
    return await asyncio.get_running_loop().run_in_executor(_threads(is_slow=is_slow), _and_give_back, work)


async def remembered(memory: Remembered[Key, Value], key: Key) -> Value:
    """Return what `memory` holds, at once if it is warm. Those who find it cold at the same time share one thread's answer."""
    with suppress(Cold):
        return memory.warm(key)
    loads = _loads.setdefault(asyncio.get_running_loop(), {})
    load = loads.get((memory, key))
    if load is None:
        load = loads[memory, key] = asyncio.ensure_future(run(partial(memory.get, key)))
        load.add_done_callback(partial(_has_loaded, loads, (memory, key)))
    # Shielded: whoever leaves must not take the answer away from the others.
    return await asyncio.shield(load)


def _has_loaded(loads: dict[Any, asyncio.Future[Any]], place: Any, load: asyncio.Future[Any]) -> None:
    del loads[place]
    if not load.cancelled():
        # Looked at, because everybody who waited may have left.
        load.exception()


def _and_give_back(work: Callable[[], Result]) -> Result:
    try:
        return work()
    finally:
        if connection.connection is not None:
            # As at the end of a request of Django.
            connection.close_if_unusable_or_obsolete()
