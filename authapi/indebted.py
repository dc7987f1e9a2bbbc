"""One request at a time, per process, for addresses over their debt: what they make us verify takes no thread from others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from authapi.addresses import AddressKey
from authapi.rate_figures import debt_figure
from authapi.sketch import Sketch

Result = TypeVar("Result")

# Over all tenants, and of this process alone: it is this process that is protected.
_refusals = Sketch(debt_figure().seconds)
# A lock belongs to the loop that it was made in.
_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def note_refusal(keys: tuple[AddressKey, ...]) -> None:
    """Count a refused request of an address."""
    for key in keys:
        _refusals.add(key.name)


def is_indebted(keys: tuple[AddressKey, ...]) -> bool:
    """Tell whether more requests of an address were refused in this minute than it may owe."""
    if _refusals.is_empty:
        # Every request asks this.
        return False
    figure = debt_figure()
    return any(_refusals.read(key.name) >= figure.burst * key.factor for key in keys)


async def one_at_a_time(work: Callable[[], Awaitable[Result]]) -> Result:
    """Do `work` when the requests of indebted addresses that came before are done. Each connection waits with one request."""
    lock = _locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    async with lock:
        return await work()
