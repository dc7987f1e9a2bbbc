"""The few threads in which hot endpoints read, sign, count and wait for hashes, so that the event loop stays free."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

from django.db import connection

Result = TypeVar("Result")

# Signing releases the interpreter lock, so each core has a thread; the others wait for Redis or the database meanwhile.
_THREADS = (os.cpu_count() or 1) + 4


# Whoever waits for a password to be hashed waits here: a flood of logins holds up neither tokens nor streams.
_WAITING_THREADS = 4


@lru_cache(maxsize=2)
def _threads(*, is_slow: bool) -> ThreadPoolExecutor:
    if is_slow:
        return ThreadPoolExecutor(_WAITING_THREADS, thread_name_prefix="authapi-slow")
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="authapi")


async def run(work: Callable[[], Result], *, is_slow: bool = False) -> Result:
    """Run `work` in one of the threads, or of those for slow work; a database connection it used goes back to the pool."""
    return await asyncio.get_running_loop().run_in_executor(_threads(is_slow=is_slow), _and_give_back, work)


def _and_give_back(work: Callable[[], Result]) -> Result:
    try:
        return work()
    finally:
        if connection.connection is not None:
            connection.close()
