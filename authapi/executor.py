"""The few threads in which hot endpoints read, sign and count, so that the event loop stays free."""

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


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="authapi")


async def run(work: Callable[[], Result]) -> Result:
    """Run `work` in one of the threads; a database connection it used goes back to the pool."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), _and_give_back, work)


def _and_give_back(work: Callable[[], Result]) -> Result:
    try:
        return work()
    finally:
        if connection.connection is not None:
            connection.close()
