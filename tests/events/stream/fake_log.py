"""A log in memory, and a stream of this log. The test controls the connection of the stream."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from datetime import UTC, datetime
from typing import Any

from events.log.cursor import Cursor, CursorSealer
from events.log.reading import Bounds, LogError, LoggedEvent, Page
from events.stream.reading.pages import SharedPages
from events.stream.reading.tail import Tails
from events.stream.stream import Stream
from events.stream.subscription import Pace, Sources, Subscription

SEALER = CursorSealer({"k1": "k" * 40}, tenant_id="acme")


class FakeLog:
    """A log in memory that a test can make slow, outdated or defective."""

    def __init__(self) -> None:
        self.head = 0
        self.epoch = 1
        self.gone = False
        self.failures: list[Exception] = []
        self.before_answer: list[Callable[[], None]] = []
        self.reads = 0
        self.page_size = 100
        self.recorded_at = datetime(2026, 1, 1, tzinfo=UTC)
        self.type_of: Callable[[int], str] = lambda _position: "user.created"

    def bounds(self) -> Bounds:
        return Bounds(self.epoch, self.head, 0, None, "est_x")

    async def page(self, tenant_id: str, cursor: Cursor, *, max_events: int, max_bytes: int) -> Page:
        self.reads += 1
        head = self.head
        if self.before_answer:
            self.before_answer.pop(0)()
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        last = min(head, cursor.position + self.page_size)
        positions = range(cursor.position + 1, last + 1)
        events = [LoggedEvent(position, self.recorded_at, self.type_of(position), b"{}") for position in positions]
        return Page(Bounds(self.epoch, head, 0, None, "est_x"), events)

    async def pages(self, places: Sequence[tuple[str, Cursor]], *, max_events: int, max_bytes: int) -> list[Page | LogError]:
        found: list[Page | LogError] = []
        for tenant_id, cursor in places:
            try:
                found.append(await self.page(tenant_id, cursor, max_events=max_events, max_bytes=max_bytes))
            except LogError as error:
                found.append(error)
        return found

    async def heads(self, tenant_ids: Sequence[str]) -> dict[str, Cursor]:
        return {} if self.gone else {tenant: Cursor(self.epoch, self.head) for tenant in tenant_ids}


class Connection:
    """Accepts the writes of a stream, or blocks them."""

    def __init__(self) -> None:
        self.body = b""
        self.reads = asyncio.Event()
        self.reads.set()

    async def send(self, message: MutableMapping[str, Any]) -> None:
        await self.reads.wait()
        self.body += message["body"]


class OpenStream:
    """A stream that starts before the first event of the log, with everything that the stream needs."""

    def __init__(
        self, log: FakeLog, *, types: frozenset[str] | None = None, pace: Pace | None = None, beside: OpenStream | None = None
    ) -> None:
        self.log = log
        self.connection = Connection()
        # Share the tail of the stream `beside`, if it is given.
        self.tails: Tails = beside.tails if beside else Tails(log, ring_bytes=1_000_000)  # type: ignore[arg-type]  # FakeLog has what a tail calls
        pages = SharedPages(log, limit=1_000_000)  # type: ignore[arg-type]  # FakeLog has the method that pages call
        self.sources = Sources(self.tails, pages, pace or Pace(15.0, 600.0, 20.0, 2000))
        start = Cursor(log.epoch, 0)
        self.subscription = Subscription("acme", "client", 1, "jti", time.time() + 3600, start, log.bounds(), types, None)
        self.task = asyncio.create_task(self._run())
        self._stream: asyncio.Future[Stream] = asyncio.get_running_loop().create_future()

    async def _run(self) -> None:
        stream = Stream(self.subscription, None, send=self.connection.send, sealer=SEALER, sources=self.sources)
        self._stream.set_result(stream)
        await stream.run()

    async def opened(self) -> Stream:
        """Wait until the first frames are written, then return the stream."""
        stream = await self._stream
        await until(lambda: self.connection.body.count(b"\n\n") >= 3)
        return stream

    def grow(self, count: int) -> None:
        """Append to the log and send the tail a hint."""
        self.log.head += count
        self.tails.heard("acme", self.log.head)


async def until(condition: Callable[[], object]) -> None:
    """Run the event loop until `condition()` is true. The surrounding test has the deadline."""
    while not condition():  # noqa: ASYNC110  (the condition may be anything)
        await asyncio.sleep(0)


def run_story(story: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine in a new event loop, with a timeout of ten seconds."""

    async def told() -> None:
        async with asyncio.timeout(10):
            await story()

    asyncio.run(told())
