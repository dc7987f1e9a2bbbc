"""What a process remembers: for how long, how much, and never from before it asked."""

from __future__ import annotations

import pytest

from foundation.memory.ttl_cache import Cold, Remembered


class Source:
    """Answers with how often it was asked, at a time that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked: list[str] = []
        self.memory: Remembered[str, int] = Remembered(self.load, seconds=1.0, limit=2, clock=lambda: self.now)

    def load(self, key: str) -> int:
        if key == "missing":
            raise KeyError(key)
        self.asked.append(key)
        return len(self.asked)


def test_an_answer_is_kept_for_its_time_and_then_asked_again() -> None:
    source = Source()
    assert [source.memory.get("a"), source.memory.get("a")] == [1, 1]
    source.now = 1.0
    assert source.memory.get("a") == 2


def test_a_younger_answer_can_be_demanded() -> None:
    source = Source()
    source.memory.get("a")
    source.now = 0.5
    assert source.memory.get("a", max_age=0.6) == 1
    assert source.memory.get("a", max_age=0.5) == 2


def test_what_is_cold_is_said_and_not_loaded() -> None:
    source = Source()
    with pytest.raises(Cold):
        source.memory.warm("a")
    source.memory.get("a")
    assert source.memory.warm("a") == 1
    source.now = 1.0
    with pytest.raises(Cold):
        source.memory.warm("a")
    assert source.asked == ["a"]


def test_a_failed_load_is_not_remembered() -> None:
    source = Source()
    with pytest.raises(KeyError):
        source.memory.get("missing")
    with pytest.raises(Cold):
        source.memory.warm("missing")


def test_the_oldest_answer_makes_room() -> None:
    source = Source()
    for key in ("a", "b", "c"):
        source.memory.get(key)
    assert [source.memory.warm("b"), source.memory.warm("c")] == [2, 3]
    with pytest.raises(Cold):
        source.memory.warm("a")


def test_forgetting_makes_the_next_question_count() -> None:
    source = Source()
    source.memory.get("a")
    source.memory.forget("a")
    source.memory.forget("never known")
    assert source.memory.get("a") == 2
    source.memory.clear()
    assert source.memory.get("a") == 3


def test_an_answer_is_as_old_as_the_question() -> None:
    source = Source()

    def slow(key: str) -> int:
        source.now += 0.9
        return 1

    memory: Remembered[str, int] = Remembered(slow, seconds=1.0, clock=lambda: source.now)
    memory.get("a")
    source.now += 0.2
    with pytest.raises(Cold):
        memory.warm("a")


def test_answers_past_their_age_are_dropped_with_the_next_load() -> None:
    source = Source()
    source.memory.get("a")
    source.now = 0.6
    source.memory.get("b")
    source.now = 1.2
    # Asked again, the answer is young again, and is not what makes room.
    source.memory.get("a")
    source.memory.get("c")
    assert [source.memory.warm("a"), source.memory.warm("c")] == [3, 4]
    source.now = 5.0
    source.memory.get("d")
    assert source.memory.size == 1


def test_what_is_remembered_is_what_the_load_would_have_said_at_the_question() -> None:
    now, said = 0.0, {"a": 1, "b": 2}
    memory: Remembered[str, int] = Remembered(lambda key: said[key], seconds=1.0, clock=lambda: now)
    assert [memory.get(key) for key in "abab"] == [said[key] for key in "abab"]
    now, said = 1.0, {"a": 3, "b": 4}
    assert [memory.get(key) for key in "abab"] == [said[key] for key in "abab"]
