"""The ring of frames: which frames it contains and drops, and the memory budget of all rings."""

from __future__ import annotations

from datetime import UTC, datetime

from events.stream.frames import Frame
from events.stream.reading.ring import RING_BYTES, Ring, RingBudget


def _frames(first: int, count: int, *, size: int = 100) -> list[Frame]:
    return [Frame(position, datetime(2026, 1, 1, tzinfo=UTC), "user.created", b"x" * size) for position in range(first, first + count)]


def _positions(ring: Ring, after: int) -> list[int]:
    return [frame.position for frame in ring.frames_after(after)]


def test_a_ring_returns_the_frames_after_a_position() -> None:
    ring = Ring(10)
    ring.append(_frames(11, 5))
    assert (ring.after, ring.end) == (10, 15)
    assert _positions(ring, 10) == [11, 12, 13, 14, 15]
    assert _positions(ring, 13) == [14, 15]
    assert _positions(ring, 15) == []
    assert ring.covers(10)
    assert not ring.covers(9)


def test_a_full_ring_drops_the_oldest_frames_and_stays_dense() -> None:
    ring = Ring(0)
    for first in range(1, 101, 10):
        ring.append(_frames(first, 10, size=10_000))
    assert ring.size <= RING_BYTES
    assert ring.end == 100
    assert _positions(ring, ring.after) == list(range(ring.after + 1, 101))


def test_a_frame_larger_than_the_ring_empties_the_ring() -> None:
    ring = Ring(0)
    ring.append([*_frames(1, 2), *_frames(3, 1, size=RING_BYTES + 1)])
    assert (ring.after, ring.end, ring.size) == (3, 3, 0)
    ring.append(_frames(4, 1))
    assert _positions(ring, 3) == [4]


def test_the_least_recently_filled_ring_is_emptied_above_the_budget() -> None:
    budget = RingBudget(2500)
    rings = [Ring(0) for _ in range(3)]
    for ring in rings:
        ring.append(_frames(1, 10))
        budget.filled(ring)
    assert [ring.size for ring in rings] == [0, 1000, 1000]
    assert (rings[0].after, rings[0].end) == (10, 10)
    rings[1].append(_frames(11, 1))
    budget.filled(rings[1])
    rings[0].append(_frames(11, 10))
    budget.filled(rings[0])
    assert [ring.size for ring in rings] == [1000, 1100, 0]
    assert budget.total == 2100


def test_dropping_a_ring_frees_its_share_of_the_budget() -> None:
    budget = RingBudget(10_000)
    ring = Ring(0)
    ring.append(_frames(1, 10))
    budget.filled(ring)
    budget.forget(ring)
    budget.forget(ring)
    assert budget.total == 0
