"""Calls of short functions that run in other threads: each caller gets its own result or error."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from foundation.memory.short_work import ShortWork


def test_many_callers_get_their_own_answers_from_other_threads() -> None:
    work = ShortWork(3)

    async def ask() -> list[tuple[int, bool]]:
        own = threading.get_ident()
        return await asyncio.gather(
            *(work.run(partial(lambda number: (number, threading.get_ident() != own), each)) for each in range(200))
        )

    assert asyncio.run(ask()) == [(number, True) for number in range(200)]


def test_an_error_reaches_only_its_caller() -> None:
    work = ShortWork(1)

    def fail() -> int:
        raise ValueError("mine")

    async def ask() -> tuple[int | BaseException, ...]:
        return await asyncio.gather(work.run(lambda: 1), work.run(fail), work.run(lambda: 2), return_exceptions=True)

    first, second, third = asyncio.run(ask())
    assert (first, third) == (1, 2)
    with pytest.raises(ValueError, match="mine"):
        raise second  # type: ignore[misc]  # it is the failure


def test_a_canceled_caller_and_a_closed_event_loop_do_not_affect_other_callers() -> None:
    work, may_go_on = ShortWork(1), threading.Event()

    async def leave() -> None:
        asking = asyncio.ensure_future(work.run(partial(may_go_on.wait, 10)))
        await asyncio.sleep(0)
        asking.cancel()

    async def stay() -> int:
        return await work.run(lambda: 3)

    asyncio.run(leave())
    may_go_on.set()
    assert asyncio.run(stay()) == 3
