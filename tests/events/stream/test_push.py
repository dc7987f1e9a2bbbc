"""The tail writes new frames directly, without waking tasks. The tests show which streams get a frame immediately, and in which order."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from functools import partial

from events.stream.frames import Frame
from events.stream.reading.ring import Ring
from events.stream.reading.sharing import WRITE_BYTES, Batch
from events.stream.reasons import DRAINING
from tests.events.stream.fake_log import SEALER, FakeLog, OpenStream, run_story, until

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def frame(position: int, event_type: str = "user.created", size: int = 10) -> Frame:
    return Frame(position, MOMENT, event_type, b"%d;" % position + b"x" * (size - 2))


def ring_of(*frames: Frame) -> Ring:
    ring = Ring(0)
    ring.append(frames)
    return ring


def positions_in(body: bytes) -> list[int]:
    """Return the positions of the events and heartbeats of a body, in order."""
    return [SEALER.open(found.decode()).position for found in re.findall(rb"^id: (\S+)$", body, re.MULTILINE)]


def test_streams_at_the_same_position_with_the_same_filter_share_one_message() -> None:
    batch = Batch(ring_of(frame(1), frame(2, "user.deleted"), frame(3)), now=1.0)
    everything, again = batch.share(0, None), batch.share(0, None)
    assert everything is again
    assert everything is not None
    assert everything.body == b"1;xxxxxxxx2;xxxxxxxx3;xxxxxxxx"
    assert everything.chunk == b"1e\r\n1;xxxxxxxx2;xxxxxxxx3;xxxxxxxx\r\n"
    filtered = batch.share(1, frozenset({"user.deleted"}))
    assert filtered is not None
    assert (filtered.body, filtered.events, batch.end) == (b"2;xxxxxxxx", 1, 3)


def test_a_stream_whose_filter_excludes_every_event_advances_without_a_message() -> None:
    share = Batch(ring_of(frame(1)), now=1.0).share(0, frozenset({"user.deleted"}))
    assert share is not None
    assert (share.events, share.body, share.read_to) == (0, b"", MOMENT)


def test_messages_larger_than_one_write_or_older_than_the_ring_are_not_shared() -> None:
    assert Batch(ring_of(frame(1, size=WRITE_BYTES), frame(2)), now=1.0).share(0, None) is None
    emptied = ring_of(frame(1))
    emptied.clear()
    assert Batch(emptied, now=1.0).share(0, None) is None


def test_a_stream_gets_the_same_bytes_from_the_tail_and_from_its_own_task() -> None:
    async def story() -> None:
        log, passed = FakeLog(), bytearray()

        def at_once(body: bytes, _chunk: bytes) -> bool:
            passed.extend(body)
            return True

        plain, fast = OpenStream(log), OpenStream(log)
        streams = await plain.opened(), await fast.opened()
        await until(lambda: all(stream._is_parked for stream in streams))
        opening = fast.connection.body
        streams[1].writer._pass = at_once
        log.head = 3
        for opened in (plain, fast):
            opened.tails.heard("acme", log.head)
        await until(lambda: all(stream.position == 3 for stream in streams))
        await until(lambda: positions_in(plain.connection.body) == [0, 1, 2, 3])
        assert fast.connection.body == opening
        assert plain.connection.body == opening + bytes(passed)
        assert [stream.writer.writing_since for stream in streams] == [0.0, 0.0]

    run_story(story)


def _has(pieces: list[bytes], count: int) -> bool:
    return len(pieces) == count


def test_the_tail_writes_directly_to_a_transport_until_its_buffer_is_full() -> None:
    async def story() -> None:
        passed: list[bytes] = []

        def at_once(body: bytes, chunk: bytes) -> bool:
            assert chunk == b"%x\r\n%b\r\n" % (len(body), body)
            if len(passed) == 2:
                return False
            passed.append(body)
            return True

        opened = OpenStream(FakeLog())
        stream = await opened.opened()
        await until(lambda: stream._is_parked)
        stream.writer._pass = at_once
        for written in (1, 2):
            opened.grow(1)
            await until(partial(_has, passed, written))
        opened.grow(1)
        await until(lambda: positions_in(opened.connection.body) == [0, 3])
        assert [positions_in(body) for body in passed] == [[1], [2]]
        assert stream.writer.bytes_written == len(opened.connection.body) + sum(map(len, passed))

    run_story(story)


def test_a_stream_finishes_a_blocked_write_in_order() -> None:
    async def story() -> None:
        opened = OpenStream(FakeLog())
        stream = await opened.opened()
        await until(lambda: stream._is_parked)
        opened.connection.reads.clear()
        opened.grow(1)
        await until(lambda: stream.position == 1)
        assert stream.writer.writing_since > 0
        opened.grow(2)
        for _ in range(20):
            await asyncio.sleep(0)
        assert positions_in(opened.connection.body) == [0]
        opened.connection.reads.set()
        await until(lambda: opened.connection.body.count(b"event: user.created") == 3)
        assert positions_in(opened.connection.body) == [0, 1, 2, 3]

    run_story(story)


def test_an_ending_stream_ends_after_its_blocked_write() -> None:
    async def story() -> None:
        opened = OpenStream(FakeLog())
        stream = await opened.opened()
        await until(lambda: stream._is_parked)
        opened.connection.reads.clear()
        opened.grow(1)
        await until(lambda: stream.position == 1)
        stream.close(DRAINING)
        for _ in range(20):
            await asyncio.sleep(0)
        opened.connection.reads.set()
        await opened.task
        assert positions_in(opened.connection.body) == [0, 1, 1]
        assert opened.connection.body.rstrip().rpartition(b"event: ")[2].startswith(b"error")

    run_story(story)


def test_the_connection_of_a_stuck_write_is_aborted() -> None:
    async def story(rounds: int) -> None:
        opened = OpenStream(FakeLog())
        stream = await opened.opened()
        await until(lambda: stream._is_parked)
        opened.connection.reads.clear()
        opened.grow(1)
        await until(lambda: stream.position == 1)
        for _ in range(rounds):
            await asyncio.sleep(0)
        stream.break_off("slow")
        await opened.task
        assert stream.ended_by == "slow"
        assert positions_in(opened.connection.body) == [0]

    run_story(lambda: story(0))
    run_story(lambda: story(20))


def test_a_closed_connection_ends_only_its_own_stream() -> None:
    async def story() -> None:
        opened = OpenStream(FakeLog())
        stream = await opened.opened()
        await until(lambda: stream._is_parked)

        async def gone(_message: object) -> None:
            raise ConnectionResetError

        stream.writer._send = gone
        opened.grow(1)
        await opened.task
        assert stream.ended_by == "client"

    run_story(story)
