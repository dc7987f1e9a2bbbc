"""The TTL cache: its maximum size, and the maximum age of its answers. The age of an answer starts when its load starts."""

from __future__ import annotations

import pytest

from foundation.memory.ttl_cache import Cold, Remembered


class Source:
    """A cached function that returns how often it was called. The test sets the clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked: list[str] = []
        self.memory: Remembered[str, int] = Remembered(self.load, seconds=1.0, limit=2, clock=lambda: self.now)

    def load(self, key: str) -> int:
        if key == "missing":
            raise KeyError(key)
        self.asked.append(key)
        return len(self.asked)


def test_an_answer_is_cached_until_its_maximum_age_and_then_loaded_again() -> None:
    source = Source()
    assert [source.memory.get("a"), source.memory.get("a")] == [1, 1]
    source.now = 1.0
    assert source.memory.get("a") == 2


def test_an_answer_older_than_the_max_age_of_a_call_is_loaded_again() -> None:
    source = Source()
    source.memory.get("a")
    source.now = 0.5
    assert source.memory.get("a", max_age=0.6) == 1
    assert source.memory.get("a", max_age=0.5) == 2


def test_a_cache_miss_on_an_event_loop_raises_an_error_instead_of_loading() -> None:
    source = Source()
    with pytest.raises(Cold):
        source.memory.warm("a")
    source.memory.get("a")
    assert source.memory.warm("a") == 1
    source.now = 1.0
    with pytest.raises(Cold):
        source.memory.warm("a")
    assert source.asked == ["a"]


def test_a_failed_load_is_not_cached() -> None:
    source = Source()
    with pytest.raises(KeyError):
        source.memory.get("missing")
    with pytest.raises(Cold):
        source.memory.warm("missing")


def test_the_oldest_answer_is_evicted_if_the_cache_is_full() -> None:
    source = Source()
    for key in ("a", "b", "c"):
        source.memory.get(key)
    assert [source.memory.warm("b"), source.memory.warm("c")] == [2, 3]
    with pytest.raises(Cold):
        source.memory.warm("a")


def test_an_answer_that_was_forgotten_is_loaded_again() -> None:
    source = Source()
    source.memory.get("a")
    source.memory.forget("a")
    source.memory.forget("never known")
    assert source.memory.get("a") == 2
    source.memory.clear()
    assert source.memory.get("a") == 3


def test_the_age_of_an_answer_starts_when_its_load_starts() -> None:
    source = Source()

    def slow(key: str) -> int:
        source.now += 0.9
        return 1

    memory: Remembered[str, int] = Remembered(slow, seconds=1.0, clock=lambda: source.now)
    memory.get("a")
    source.now += 0.2
    with pytest.raises(Cold):
        memory.warm("a")


def test_expired_answers_are_dropped_at_the_next_load() -> None:
    source = Source()
    source.memory.get("a")
    source.now = 0.6
    source.memory.get("b")
    source.now = 1.2
    # The expired answer of "a" is loaded again and becomes the newest entry. So the next load evicts "b" and not "a".
    source.memory.get("a")
    source.memory.get("c")
    assert [source.memory.warm("a"), source.memory.warm("c")] == [3, 4]
    source.now = 5.0
    source.memory.get("d")
    assert source.memory.size == 1


def test_cached_answers_equal_loaded_answers() -> None:
    now, said = 0.0, {"a": 1, "b": 2}
    memory: Remembered[str, int] = Remembered(lambda key: said[key], seconds=1.0, clock=lambda: now)
    assert [memory.get(key) for key in "abab"] == [said[key] for key in "abab"]
    now, said = 1.0, {"a": 3, "b": 4}
    assert [memory.get(key) for key in "abab"] == [said[key] for key in "abab"]
