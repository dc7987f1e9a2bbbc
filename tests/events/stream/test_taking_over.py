"""Streams that write to the transport themselves. After every failure, the slot is freed and the connection ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest

from events.log.cursor import Cursor
from events.log.reading import Bounds
from events.stream.admission import Admitted
from events.stream.endpoint import serve
from events.stream.operating.leases import TenantLimitReached
from events.stream.runtime import StreamRuntime
from events.stream.subscription import Subscription
from tests.events.stream.fake_log import run_story, until

TENANT = "taken-over"


class BrokenWire:
    """Accepts every call and does nothing."""

    def __init__(self) -> None:
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True

    def watch(self, gone: Callable[[], None]) -> None:
        raise RuntimeError("no connection to watch")

    def write(self, body: bytes, chunk: bytes) -> bool:
        return False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        raise ConnectionResetError


async def _admitted(shared: StreamRuntime) -> Admitted:
    lease = await shared.leases.acquire(TENANT, limit=1)
    start = Cursor(1, 0)
    subscription = Subscription(TENANT, "client", 1, "jti", time.time() + 3600, start, Bounds(1, 0, 0, None, "est_x"), None, None)
    return Admitted(subscription, lease, None, [])


async def _slot_comes_back(shared: StreamRuntime) -> None:
    # There is only one slot, which can be acquired again after the first stream has freed the slot.
    while True:
        try:
            shared.leases.release(await shared.leases.acquire(TENANT, limit=1))
        except TenantLimitReached:
            await asyncio.sleep(0)
        else:
            return


async def _serve(shared: StreamRuntime, take_over: Callable[[Any], Any]) -> None:
    async def unused(*_: object) -> Any:
        raise AssertionError("the stream has taken over the response, so it must not use `receive` or `send`")

    await serve(await _admitted(shared), shared, {"extensions": {"identity.stream": take_over}}, unused, unused)


def with_a_runtime(story: Callable[[StreamRuntime], Awaitable[None]]) -> None:
    async def told() -> None:
        shared = StreamRuntime()
        try:
            await story(shared)
        finally:
            await shared.stop()

    run_story(told)


def test_a_stream_without_access_to_its_transport_occupies_no_slot() -> None:
    def refused(_: object) -> None:
        raise RuntimeError("no transport")

    async def story(shared: StreamRuntime) -> None:
        with pytest.raises(RuntimeError, match="no transport"):
            await _serve(shared, refused)
        await _slot_comes_back(shared)

    with_a_runtime(story)


def test_a_stream_that_cannot_start_ends_its_connection() -> None:
    async def story(shared: StreamRuntime) -> None:
        wire = BrokenWire()
        await _serve(shared, lambda _: wire)
        await until(lambda: wire.is_aborted)
        await _slot_comes_back(shared)
        assert not shared.streams

    with_a_runtime(story)


def test_a_process_stops_after_its_last_stream_has_freed_everything() -> None:
    given_back = False

    async def last_words() -> None:
        nonlocal given_back
        for _ in range(20):
            await asyncio.sleep(0)
        given_back = True

    async def story(shared: StreamRuntime) -> None:
        shared.keep(last_words())

    with_a_runtime(story)
    assert given_back
