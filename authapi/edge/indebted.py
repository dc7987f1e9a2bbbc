"""Serializes, per process, the requests of IP addresses with too many refused requests, so that threads remain for other requests.

Requests that need a password hash have a separate queue, so that other requests do not wait for hashes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from authapi.edge.addresses import AddressKey
from authapi.edge.rate_figures import debt_figure
from foundation.memory.sketch import Sketch

Result = TypeVar("Result")

# Refused requests to all tenants, counted only in this process, because the limit protects the process.
_refusals = Sketch(debt_figure().seconds)
# Locks for fast and slow work. A lock belongs to the event loop that created it.
_locks: dict[bool, WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]] = {
    False: WeakKeyDictionary(),
    True: WeakKeyDictionary(),
}


def note_refusal(keys: tuple[AddressKey, ...]) -> None:
    """Count a refused request of an IP address."""
    for key in keys:
        _refusals.add(key.name)


def is_indebted(keys: tuple[AddressKey, ...]) -> bool:
    """Tell whether the refused requests of an IP address in this minute have reached the limit."""
    if _refusals.is_empty:
        # Return early in the usual case, because every request calls this function.
        return False
    figure = debt_figure()
    return any(_refusals.read(key.name) >= figure.burst * key.factor for key in keys)


async def in_turn(keys: tuple[AddressKey, ...], work: Callable[[], Awaitable[Result]], *, is_slow: bool = False) -> Result:
    """Run `work`. Work of an IP address over the limit waits for the earlier work of all IP addresses over the limit.

    Slow work waits only for slow work. Each network connection has at most one waiting request, which bounds the number of waiting
    requests.
    """
    if not is_indebted(keys):
        return await work()
    lock = _locks[is_slow].setdefault(asyncio.get_running_loop(), asyncio.Lock())
    async with lock:
        return await work()
