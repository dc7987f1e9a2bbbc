"""`Bell.ring` wakes the waiting task. After the call, a task that begins to wait continues at once, until `Bell.clear` is called."""

from __future__ import annotations

import asyncio

from events.stream.bell import Bell
from tests.events.stream.fake_log import run_story


def test_ringing_the_bell_wakes_waiting_and_later_tasks_until_the_bell_is_cleared() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        bell = Bell(loop)
        loop.call_soon(bell.ring)
        await bell.heard()
        await bell.heard()
        bell.clear()
        assert not bell.heard().done()

    run_story(story)


def test_a_task_that_stopped_waiting_does_not_prevent_the_bell_from_waking_the_next_task() -> None:
    async def story() -> None:
        bell = Bell(asyncio.get_running_loop())
        gone = bell.heard()
        gone.cancel()
        bell.ring()
        bell.ring()
        assert bell.has_rung
        assert bell.heard().done()

    run_story(story)
