"""The shared state of all streams of one process, and its life cycle: start at first use, drain, stop."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import OrderedDict, defaultdict
from collections.abc import Coroutine
from typing import Any

from django.conf import settings

from events import metrics
from events.hints import HintListener
from events.log.cursor import CursorSealer
from events.log.numbering import on_numbered
from events.log.reading import LogReader, read_pool
from events.stream.measures import measures
from events.stream.operating.calls import Callee, Details, attach, call_channel, detach
from events.stream.operating.canary import CANARY, canary_of
from events.stream.operating.canary_watch import CANARY_FATE, SentCanaries
from events.stream.operating.connections import DESCRIBE, DISCONNECT, FORGET, describe_all, disconnect_one
from events.stream.operating.leases import Leases
from events.stream.reading.pages import SharedPages
from events.stream.reading.tail import Tails
from events.stream.reasons import DRAINING
from events.stream.standing import watch_standing
from events.stream.stream import Stream
from events.stream.subscription import Pace, Sources
from events.stream.timers import Wheel, tick_for
from events.stream.writer import SHUTDOWN

_SEALERS_KEPT = 1024
# The pages of replays get EVENTS_RING_BYTES divided by this number, and the rings get the rest. Many streams replay only for a short time,
# so a small share is enough for the pages.
_PAGES_SHARE_OF_BUDGET = 8
# Streams begin to close within this share of the drain time. The rest of the time is for their last bytes.
_SPREAD_SHARE = 0.8
_MEASURE_SECONDS = 1.0
_LAST_WORDS_SECONDS = 1.0


class StreamRuntime:
    """The log reader, tails, slots, timers and open streams of one process and its event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pool = read_pool()
        self.log = LogReader(self._pool)
        pages_bytes = settings.EVENTS_RING_BYTES // _PAGES_SHARE_OF_BUDGET
        pages = SharedPages(self.log, limit=pages_bytes)
        self.tails = Tails(self.log, ring_bytes=settings.EVENTS_RING_BYTES - pages_bytes)
        pace = Pace(
            settings.EVENTS_HEARTBEAT_SECONDS,
            settings.EVENTS_LIFETIME_SECONDS,
            settings.EVENTS_WRITE_DEADLINE_SECONDS,
            settings.EVENTS_RETRY_MS,
        )
        self.sources = Sources(self.tails, pages, pace)
        self.wheel = Wheel(tick_for(pace.heartbeat))
        self.leases = Leases(
            settings.REDIS_URL, settings.REDIS_PREFIX, settings.EVENTS_LEASE_SECONDS, settings.EVENTS_MAX_CONNECTIONS_PER_PROCESS
        )
        self.streams: set[Stream] = set()
        self._streams_of: defaultdict[str, set[Stream]] = defaultdict(set)
        self._canaries = SentCanaries()
        handlers = {
            DESCRIBE: self._describe,
            DISCONNECT: self._disconnect,
            FORGET: self._forget_frames,
            CANARY: self._offer_canary,
            CANARY_FATE: self._canaries.tell,
        }
        self._callee = Callee(settings.REDIS_URL, handlers)
        self.is_draining = False
        self._empty = asyncio.Event()
        self._sealers: OrderedDict[str, CursorSealer] = OrderedDict()
        self._tasks: list[asyncio.Task[None]] = []
        self._kept: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Open the connection pool in the background and start the tasks that all streams share."""
        await self._pool.open()
        also = {call_channel(): self._callee.hear}
        hints = HintListener(settings.REDIS_URL, heard=self.tails.heard, connected=self.tails.look_now, also=also)
        attach(self._callee)
        work = (self.tails.poll(), hints.run(), self.wheel.run(), self.leases.renew(), watch_standing(self.streams), self._measure())
        self._tasks = [self._loop.create_task(coroutine) for coroutine in work]

    def heard_in_thread(self, tenant_id: str, position: int) -> None:
        """Accept a hint from the numberer's thread of this process."""
        # If the event loop has just closed, no stream needs the hint.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.tails.heard, tenant_id, position)

    def sealer(self, tenant_id: str) -> CursorSealer:
        """Return the sealer of the tenant. Sealers of recently used tenants are cached."""
        sealer = self._sealers.get(tenant_id)
        if sealer is None:
            sealer = self._sealers[tenant_id] = CursorSealer(settings.CURSOR_KEYS, tenant_id=tenant_id)
            if len(self._sealers) > _SEALERS_KEPT:
                self._sealers.popitem(last=False)
        else:
            self._sealers.move_to_end(tenant_id)
        return sealer

    def keep(self, serving: Coroutine[Any, Any, None]) -> None:
        """Run the task of a stream that writes to its transport itself. For the server, the request of this stream has ended."""
        task = self._loop.create_task(serving)
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)

    def add(self, stream: Stream) -> None:
        """Register an open stream."""
        self.streams.add(stream)
        self._streams_of[stream.subscription.tenant_id].add(stream)
        metrics.CONNECTIONS.inc()
        now = self._loop.time()
        self.wheel.put(stream, stream.on_time(now))
        if self.is_draining:
            stream.close(DRAINING)

    def remove(self, stream: Stream) -> None:
        """Unregister a stream that has ended."""
        stream.leave()
        if stream in self.streams:
            self.streams.discard(stream)
            metrics.CONNECTIONS.dec()
            self._forget(stream)
        self.wheel.remove(stream)
        if not self.streams:
            self._empty.set()

    async def drain(self) -> None:
        """Refuse new streams, and close the open streams at random times within `EVENTS_DRAIN_SECONDS`.

        Return when all streams have ended, at the latest after this time.
        """
        window = settings.EVENTS_DRAIN_SECONDS
        if not self.is_draining:
            self.is_draining = True
            for stream in self.streams:
                self._loop.call_later(window * _SPREAD_SHARE * random.random(), stream.close, DRAINING)  # noqa: S311  (not a secret)
        if self.streams:
            self._empty.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(window):
                    await self._empty.wait()

    async def stop(self) -> None:
        """Drain, then end every task and close all connections."""
        await self.drain()
        for stream in list(self.streams):
            stream.break_off(SHUTDOWN)
        if self._kept:
            # Wait until these tasks release their slots, because the connection to Redis is closed below.
            await asyncio.wait(self._kept, timeout=_LAST_WORDS_SECONDS)
        detach(self._callee)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._callee.close()
        await self.leases.close()
        await self._pool.close()

    def _forget(self, stream: Stream) -> None:
        tenant_id = stream.subscription.tenant_id
        self._streams_of[tenant_id].discard(stream)
        if not self._streams_of[tenant_id]:
            del self._streams_of[tenant_id]

    def _describe(self, call: Details) -> list[dict[str, Any]]:
        return describe_all(self._streams_of.get(call["tenant"], ()))

    def _disconnect(self, call: Details) -> bool:
        return disconnect_one(self._streams_of.get(call["tenant"], ()), call)

    def _forget_frames(self, call: Details) -> bool:
        self.tails.forget_frames(call["tenant"])
        self.sources.pages.forget(call["tenant"])
        return True

    def _offer_canary(self, call: Details) -> None:
        canary = canary_of(call)
        for stream in self._streams_of.get(canary.tenant_id, ()):
            if stream.subscription.client_id == canary.client_id:
                stream.offer(canary)
                self._canaries.note(canary, stream.subscription)

    async def _measure(self) -> None:
        while True:
            due = self._loop.time() + _MEASURE_SECONDS
            await asyncio.sleep(_MEASURE_SECONDS)
            metrics.LOOP_LAG.observe(max(0.0, self._loop.time() - due))
            self.sources.pages.let_go(self._loop.time())
            metrics.BUFFER_BYTES.set(self.tails.buffered + self.sources.pages.size)
            measures.hand_over()


_runtimes: dict[asyncio.AbstractEventLoop, asyncio.Task[StreamRuntime]] = {}


async def runtime() -> StreamRuntime:
    """Return the runtime of this event loop, started on first use."""
    loop = asyncio.get_running_loop()
    starting = _runtimes.get(loop)
    if starting is None:
        starting = _runtimes[loop] = loop.create_task(_started())
    return await asyncio.shield(starting)


def running() -> StreamRuntime | None:
    """Return the runtime of this event loop if it was started."""
    starting = _runtimes.get(asyncio.get_running_loop())
    return starting.result() if starting is not None and starting.done() else None


async def drain_runtime() -> None:
    """Drain the runtime of this event loop, if there is one."""
    current = running()
    if current is not None:
        await current.drain()


async def stop_runtime() -> None:
    """Drain and stop the runtime of this event loop, if there is one."""
    current = running()
    if current is not None:
        await current.stop()
        _runtimes.pop(asyncio.get_running_loop(), None)


async def _started() -> StreamRuntime:
    new = StreamRuntime()
    await new.start()
    on_numbered(_heard)
    return new


def _heard(tenant_id: str, position: int) -> None:
    for starting in list(_runtimes.values()):
        if starting.done():
            starting.result().heard_in_thread(tenant_id, position)
