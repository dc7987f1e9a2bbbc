"""After a call to a server fails, further calls are suspended for a pause and then resumed."""

from __future__ import annotations

import pytest
import redis

from foundation.memory.outage_guard import OutageGuard


class Clock:
    """A clock whose time the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Server:
    """Answers "shared", or fails while `failure` is set. Counts its calls."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return "shared"


@pytest.mark.parametrize("failure", [redis.ConnectionError(), OSError()])
def test_calls_to_a_failed_server_are_suspended_for_five_seconds(failure: Exception) -> None:
    clock, server = Clock(), Server()
    guard = OutageGuard(clock=clock)
    server.failure = failure

    assert [guard.ask(server, lambda: "own") for _ in range(3)] == ["own"] * 3
    assert guard.is_open
    assert server.asked == 1

    clock.now += 5.0
    server.failure = None
    assert guard.ask(server, lambda: "own") == "shared"
    assert not guard.is_open


def test_only_one_caller_tests_whether_the_server_has_recovered() -> None:
    clock, server = Clock(), Server()
    guard = OutageGuard(clock=clock)
    guard.failed()
    clock.now += 5.0
    found: list[str] = []

    def probing() -> str:
        found.append(guard.ask(server, lambda: "own"))
        return "shared"

    assert guard.ask(probing, lambda: "own") == "shared"
    assert found == ["own"]


def test_the_pause_doubles_with_each_failure_until_an_answer_resets_it() -> None:
    guard = OutageGuard(0.5, longest=3.0, clock=Clock())
    assert [guard.failed() for _ in range(4)] == [0.5, 1.0, 2.0, 3.0]
    guard.answered()
    assert not guard.is_open
    assert guard.failed() == 0.5
