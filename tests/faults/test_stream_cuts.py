"""Connections are cut after each possible byte. A client that resumes has read each event of the log exactly once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from contextlib import suppress
from typing import SupportsIndex

import pytest

from tests.deadlines import eventually
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import Reader, Session, assert_holds, violations
from tests.faults.proxy import Proxy
from tests.faults.world import World

pytestmark = pytest.mark.fault


def test_subscribers_that_disconnect_at_random_receive_exactly_the_log(world: World, following: Following) -> None:
    tenant, other = world.tenant(), world.tenant()
    with world.two_webs() as webs, Proxy(*(web.address for web in webs)) as balancer:
        with world.writers(tenant, 2, think=0.005) as writers, world.writers(other, 1) as elsewhere:
            seeds = [random.Random(world.random.random()) for _ in range(8)]
            everything = [
                Follower(f"cut {number}", tenant, lambda: balancer.address, cut_bytes=15_000, random=seed)
                for number, seed in enumerate(seeds)
            ]
            types = frozenset({"group.updated", "organization.created", "user.deleted"})
            following.add(*everything, Follower("filtered", tenant, lambda: balancer.address, types=types, cut_bytes=4_000))
            eventually(lambda: writers.have_made(300), seconds=90, pause=0.2)
            balancer.reset_all()
            writers.stop()
            elsewhere.stop()
            eventually(lambda: world.is_numbered(tenant))
        following.all_at(world.head(tenant))
        following.stop()
    assert_never_failed(following)
    assert sum(len(follower.sessions) for follower in following.followers) > 30
    assert_holds(world.history(tenant, [writers], following.readers, foreign=[other]))


class _Recorded(asyncio.StreamReader):
    """A connection that keeps every received byte."""

    wire = b""

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        self.wire += bytes(data)
        super().feed_data(data)


async def _captured(follower: Follower, until: str) -> bytes:
    """Read a real session up to the offset `until`, and return all its bytes, including the head and chunk sizes."""
    loop = asyncio.get_running_loop()
    recorded = _Recorded()
    transport, _ = await loop.create_connection(lambda: asyncio.StreamReaderProtocol(recorded), *follower.address())
    transport.write(follower.request())
    reading = asyncio.create_task(follower.read(recorded))
    try:
        async with asyncio.timeout(20):
            while follower.last_offset != until:  # noqa: ASYNC110  (polled by the clock of the test, as everywhere here)
                await asyncio.sleep(0.01)
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        transport.abort()
        await asyncio.sleep(0)
    return recorded.wire


async def _cut(follower: Follower, wire: bytes) -> Session | None:
    """Return the state of a client whose connection ends after these bytes."""
    incoming = asyncio.StreamReader()
    incoming.feed_data(wire)
    incoming.feed_eof()
    with suppress(EOFError, ValueError, IndexError):
        await follower.read(incoming)
    return follower.sessions[0] if follower.sessions else None


def test_a_client_that_resumes_after_a_cut_at_any_byte_reads_exactly_the_log(world: World) -> None:
    tenant = world.tenant()
    with world.web() as web, world.writers(tenant, 1, count=20, think=0.0) as writers:
        writers.wait()
        eventually(lambda: world.is_numbered(tenant))
        head = tenant.sealer.seal(world.cursor(tenant))

        def client(*sessions: Session) -> Follower:
            return Follower("cut", tenant, lambda: web.address, sessions=list(sessions))

        async def cut_everywhere() -> tuple[int, dict[tuple[str, int], Session], dict[str, Session]]:
            wire = await _captured(client(), head)
            states: dict[tuple[str, int], Session] = {}
            rests: dict[str, Session] = {}
            for length in range(len(wire) + 1):
                session = await _cut(client(), wire[:length]) or Session(tenant.start)
                states.setdefault((session.last_offset or "", len(session.blocks)), session)
            # The state of a client is its last offset. Clients with the same offset resume in the same way.
            for offset in {offset for offset, _ in states}:
                follower = client(Session(tenant.start), Session(offset))
                await _captured(follower, head)
                rests[offset] = follower.sessions[-1]
            return len(wire), states, rests

        length, states, rests = asyncio.run(cut_everywhere())
    history = world.history(tenant, [writers], [])
    assert length > 5_000
    assert len(states) > len(history.log) - tenant.base
    for (offset, _), session in states.items():
        history.readers = [Reader(f"cut after {len(session.blocks)} blocks", tenant.id, [session, rests[offset]])]
        assert violations(history) == []
