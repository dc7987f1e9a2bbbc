"""A process that receives the call `forget` drops its cached entries of one log, and its streams continue."""

from __future__ import annotations

import asyncio
import time

from django.db import connections
from pytest_django.fixtures import Settings

from events.log.numbering import number_tenant
from events.stream.operating.connections import forget_frames
from events.stream.reading.sharing import Batch
from events.stream.reading.tail import Tail
from events.stream.reasons import Reason
from events.stream.runtime import StreamRuntime
from identity.models import Tenant
from tests.factories.models.identity import ConnectionFactory


class Reader:
    """Follows a tail and ignores its frames."""

    def push(self, batch: Batch) -> None:
        pass

    def close(self, reason: Reason) -> None:
        pass


def _record(tenant: Tenant, name: str) -> None:
    try:
        ConnectionFactory.create(tenant_id=tenant.pk, name=name, strategy="email")
        number_tenant(tenant.pk)
    finally:
        # Close the connection of this thread.
        connections.close_all()


def test_every_process_drops_its_cached_frames_and_later_frames_still_arrive(tenant: Tenant, settings: Settings) -> None:
    settings.REDIS_PREFIX = f"{settings.REDIS_PREFIX}:{time.monotonic_ns()}"

    async def until_read(runtime: StreamRuntime, tail: Tail, position: int) -> None:
        while runtime.tails.buffered == 0 or tail.ring.end < position:
            runtime.tails.look_now()
            await asyncio.sleep(0.01)

    async def story() -> None:
        runtime = StreamRuntime()
        await runtime.start()
        try:
            bounds = await runtime.log.bounds(tenant.pk)
            tail = runtime.tails.follow(Reader(), tenant.pk, bounds, runtime.sealer(tenant.pk))
            await asyncio.to_thread(_record, tenant, "first")
            await until_read(runtime, tail, 1)

            answered, silent = await asyncio.to_thread(forget_frames, tenant.pk)

            assert (answered >= 1, silent) == (True, 0)
            assert runtime.tails.buffered == 0
            await asyncio.to_thread(_record, tenant, "second")
            await until_read(runtime, tail, 2)
            assert [frame.position for frame in tail.ring.frames_after(1)] == [2]
        finally:
            await runtime.stop()

    async def told() -> None:
        async with asyncio.timeout(30):
            await story()

    asyncio.run(told())
