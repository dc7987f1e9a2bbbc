"""The timer wheel, which the tests turn step by step."""

from __future__ import annotations

from events.stream.timers import Wheel, tick_for


class Member:
    """A member of the wheel. It requests its next call after a fixed time, and records each call."""

    def __init__(self, every: float) -> None:
        self.slot = 0
        self.every = every
        self.seen: list[float] = []

    def on_time(self, now: float) -> float:
        self.seen.append(now)
        return now + self.every


def _turned(wheel: Wheel, until: float, step: float = 1.0) -> None:
    now = 0.0
    while now <= until:
        wheel.turn(now)
        now += step


def test_a_member_is_called_on_time_or_at_most_two_ticks_later() -> None:
    wheel = Wheel(1.0)
    member = Member(5.0)
    wheel.put(member, 5.0)
    _turned(wheel, 30.0)
    assert member.seen
    gaps = [later - earlier for earlier, later in zip([0.0, *member.seen], member.seen, strict=False)]
    assert all(5.0 <= gap <= 7.0 for gap in gaps), gaps


def test_a_removed_member_is_not_called() -> None:
    wheel = Wheel(1.0)
    member = Member(1.0)
    wheel.put(member, 3.0)
    wheel.remove(member)
    wheel.remove(member)
    _turned(wheel, 10.0)
    assert member.seen == []


def test_an_overdue_member_is_called_in_the_next_turn() -> None:
    wheel = Wheel(1.0)
    wheel.turn(100.0)
    member = Member(1000.0)
    wheel.put(member, 3.0)
    wheel.turn(101.0)
    assert member.seen == [101.0]


def test_no_member_is_skipped_after_a_long_pause() -> None:
    wheel = Wheel(1.0)
    members = [Member(1e9) for _ in range(50)]
    for number, member in enumerate(members):
        wheel.put(member, float(number))
    wheel.turn(1_000_000.0)
    assert all(member.seen == [1_000_000.0] for member in members)


def test_the_length_of_a_tick_depends_on_the_heartbeat_within_limits() -> None:
    assert tick_for(15.0) == 1.0
    assert tick_for(60.0) == 1.0
    assert tick_for(0.6) == 0.04
    assert tick_for(0.05) == 0.02
