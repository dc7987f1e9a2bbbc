"""One request at a time, per process, for addresses over their debt: what they make us verify takes no thread from others.

Requests that wait for a hash have a turn of their own, so that those without a password do not queue behind hashes.
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

# Over all tenants, and of this process alone: it is this process that is protected.
_refusals = Sketch(debt_figure().seconds)
# Locks of fast and of slow work. A lock belongs to the loop that it was made in.
_locks: dict[bool, WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]] = {
    False: WeakKeyDictionary(),
    True: WeakKeyDictionary(),
}


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


async def in_turn(keys: tuple[AddressKey, ...], work: Callable[[], Awaitable[Result]], *, is_slow: bool = False) -> Result:
    """Do `work`: at once, or for an indebted address when the work of such addresses that came before is done.

    Slow work waits only for slow work. Each connection waits with one request.
    """
    if not is_indebted(keys):
        return await work()
    lock = _locks[is_slow].setdefault(asyncio.get_running_loop(), asyncio.Lock())
    async with lock:
        return await work()
