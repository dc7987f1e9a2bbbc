"""Subscribers that always reconnect. They keep every byte, resume after the last complete block, and can disconnect at random."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.deadlines import eventually
from tests.faults.invariants import Place, Reader, Sent, Session
from tests.faults.world import Seeded

Address = tuple[str, int]
_LONGEST_WAIT_SECONDS = 1.0
_LARGEST_PIECE = 65_536
PATH = "/api/v2/events"


@dataclass
class Follower:
    """One subscriber. `cut_bytes` is the average number of bytes after which the subscriber cuts its own connection; 0 means never."""

    name: str
    tenant: Seeded
    address: Callable[[], Address]
    types: frozenset[str] | None = None
    cut_bytes: int = 0
    random: random.Random = field(default_factory=random.Random)
    sessions: list[Session] = field(default_factory=list)
    attempts: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    arrived: dict[int, float] = field(default_factory=dict)
    open_now: bool = False
    stopping: bool = False
    keep_bytes: bool = True

    @property
    def last_offset(self) -> str:
        return (self.sessions[-1].last_offset if self.sessions else None) or self.tenant.start

    @property
    def reached(self) -> Place:
        return self.tenant.opened(self.last_offset)

    @property
    def reader(self) -> Reader:
        return Reader(self.name, self.tenant.id, self.sessions, self.types)

    async def run(self) -> None:
        """Connect repeatedly until stopped."""
        while not self.stopping:
            self.attempts.append(time.monotonic())
            wait = 0.05
            try:
                wait = await self._connection()
            except (OSError, EOFError, ValueError, IndexError):
                self.errors["connection"] += 1
            finally:
                self.open_now = False
            await asyncio.sleep(wait * self.random.uniform(0.5, 1.0))

    async def _connection(self) -> float:
        host, port = self.address()
        incoming, outgoing = await asyncio.wait_for(asyncio.open_connection(host, port), 5.0)
        try:
            outgoing.write(self.request())
            return await self.read(incoming)
        finally:
            # Abort the connection instead of closing it cleanly, like a client that loses its network.
            outgoing.transport.abort()

    async def read(self, incoming: asyncio.StreamReader) -> float:
        """Read one response to its end. Return the seconds to wait before the next attempt."""
        head = await asyncio.wait_for(incoming.readuntil(b"\r\n\r\n"), 15.0)
        status = int(head.split(b" ", 2)[1])
        self.statuses[status] += 1
        if status != 200:
            return min(_header(head, b"retry-after"), _LONGEST_WAIT_SECONDS)
        self.open_now = True
        return await self._stream(incoming, chunked=b"transfer-encoding: chunked" in head.lower())

    def request(self) -> bytes:
        """Return the request line and the headers of the next request."""
        query = "&".join(f"event_type={kind}" for kind in sorted(self.types or ()))
        lines = [
            f"GET {PATH}{'?' + query if query else ''} HTTP/1.1",
            f"Host: {self.tenant.host}",
            f"Authorization: Bearer {self.tenant.token}",
            f"Last-Event-ID: {self.last_offset}",
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def _stream(self, incoming: asyncio.StreamReader, *, chunked: bool) -> float:
        session = Session(self.last_offset)
        self.sessions.append(session)
        budget = self.random.expovariate(1 / self.cut_bytes) if self.cut_bytes else float("inf")
        rest, wait, count = b"", 0.2, 0
        async for data in _pieces(incoming, chunked=chunked):
            count += len(data)
            if count > budget:
                # The subscriber cuts its connection when the budget is used up. Treat all later bytes as not received.
                data = data[: len(data) - (count - int(budget))]
            if self.keep_bytes:
                session.received += data
            *blocks, rest = (rest + data).split(b"\n\n")
            for block in blocks:
                wait = self._take(block, session, wait)
            if self.stopping or count >= budget:
                break
        return wait

    def _take(self, block: bytes, session: Session, wait: float) -> float:
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if not line.startswith(b":") and b": " in line)
        if b"retry" in fields:
            return int(fields[b"retry"]) / 1000
        if b"id" in fields:
            sent = Sent(fields.get(b"event", b"").decode(), fields[b"id"].decode(), fields.get(b"data", b""))
            session.blocks.append(sent)
            if sent.event != "offset-only":
                self.arrived[self.tenant.opened(sent.offset).position] = time.time()
        elif fields.get(b"event") == b"error":
            self.errors[fields[b"data"].decode()] += 1
        return wait


def _header(head: bytes, name: bytes) -> float:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(name + b":"):
            return float(line.partition(b":")[2])
    return 0.2


async def _pieces(incoming: asyncio.StreamReader, *, chunked: bool) -> AsyncIterator[bytes]:
    """Yield pieces of the body as they arrive, until the body ends. With `chunked`, the body has the chunked transfer coding of HTTP."""
    while True:
        left = int((await incoming.readuntil(b"\r\n")).partition(b";")[0], 16) if chunked else _LARGEST_PIECE
        if left == 0:
            return
        while left:
            data = await incoming.read(min(left, _LARGEST_PIECE))
            if not data:
                return
            yield data
            left -= len(data) if chunked else left
        if chunked:
            await incoming.readexactly(2)


class Following:
    """A context manager that runs subscribers on an event loop in its own thread."""

    def __init__(self) -> None:
        self.followers: list[Follower] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: list[asyncio.Task[None]] = []

    def add(self, *followers: Follower) -> None:
        """Start subscribers."""
        for follower in followers:
            self.followers.append(follower)
            self._loop.call_soon_threadsafe(self._start, follower)

    def _start(self, follower: Follower) -> None:
        self._tasks.append(self._loop.create_task(follower.run()))

    def all_open(self, *, seconds: float = 20.0) -> None:
        eventually(lambda: all(follower.open_now for follower in self.followers), seconds=seconds)

    def all_at(self, place: Place, *, seconds: float = 30.0) -> None:
        """Wait until every subscriber has read the log up to `place`."""
        try:
            eventually(lambda: all(follower.reached >= place for follower in self.followers), seconds=seconds, pause=0.05)
        except AssertionError as error:
            behind = [(one.name, one.reached, dict(one.statuses), dict(one.errors)) for one in self.followers if one.reached < place]
            raise AssertionError(f"{len(behind)} subscribers have not reached {place}: {behind[:5]}") from error

    def stop(self) -> None:
        for follower in self.followers:
            follower.stopping = True
        future = asyncio.run_coroutine_threadsafe(self._cancel(), self._loop)
        with suppress(TimeoutError):
            future.result(10)

    async def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def readers(self) -> list[Reader]:
        return [follower.reader for follower in self.followers]

    @property
    def statuses(self) -> Counter[int]:
        return sum((follower.statuses for follower in self.followers), Counter[int]())

    def __enter__(self) -> Following:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def latencies(followers: Iterable[Follower], committed: dict[int, float]) -> list[float]:
    """Return the seconds between the assignment of each position (`committed`) and its arrival at each subscriber, sorted."""
    return sorted(
        follower.arrived[position] - moment
        for follower in followers
        for position, moment in committed.items()
        if position in follower.arrived
    )


def assert_never_failed(following: Following) -> None:
    """Assert that every response was a stream, a refusal with a time for the next try, or a refusal because of the limit of connections."""
    odd = {status: count for status, count in following.statuses.items() if status not in {200, 403, 429, 503}}
    assert not odd, odd
