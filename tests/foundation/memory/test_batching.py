"""Combined calls: how many calls are made, which answer each caller gets, and the effect of failures and cancellations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from foundation.memory import executor
from foundation.memory.batching import Gathering
from foundation.memory.ttl_cache import Remembered


class Source:
    """A source. Each call waits until the test sets `may_answer`, and then returns the number of the call for every key."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.gathering: Gathering[str, int] = Gathering(self.answers)

    async def answers(self, keys: Sequence[str]) -> dict[str, int]:
        self.calls.append(list(keys))
        number = len(self.calls)
        self.is_asked.set()
        await self.may_answer.wait()
        if "broken" in keys:
            raise OSError("away")
        return dict.fromkeys(keys, number)

    def ask(self, key: str) -> asyncio.Task[int]:
        return asyncio.create_task(self.gathering.ask(key))


def _run(story: Callable[[Source], Awaitable[None]]) -> None:
    async def told() -> None:
        await story(Source())

    asyncio.run(told())


def test_concurrent_calls_are_combined_into_one_call_that_contains_each_key_once() -> None:
    async def story(source: Source) -> None:
        source.may_answer.set()
        assert await asyncio.gather(*map(source.gathering.ask, "abca")) == [1, 1, 1, 1]
        assert source.calls == [["a", "b", "c"]]

    _run(story)


def test_a_call_never_gets_an_answer_that_was_requested_before_the_call() -> None:
    async def story(source: Source) -> None:
        first = source.ask("a")
        await source.is_asked.wait()
        later = [source.ask("a"), source.ask("b")]
        await asyncio.sleep(0)
        source.may_answer.set()
        assert await first == 1
        assert await asyncio.gather(*later) == [2, 2]
        assert source.calls == [["a"], ["a", "b"]]

    _run(story)


def test_a_failure_reaches_all_combined_callers_and_the_next_caller_makes_a_new_call() -> None:
    async def story(source: Source) -> None:
        source.may_answer.set()
        told = await asyncio.gather(source.ask("broken"), source.ask("a"), return_exceptions=True)
        assert [type(answer) for answer in told] == [OSError, OSError]
        assert await source.gathering.ask("a") == 2

    _run(story)


def test_canceling_one_caller_does_not_affect_the_answers_of_other_callers() -> None:
    async def story(source: Source) -> None:
        leaver, other = source.ask("a"), source.ask("a")
        await source.is_asked.wait()
        leaver.cancel()
        source.may_answer.set()
        assert await other == 1
        assert leaver.cancelled()

    _run(story)


def test_a_combined_call_that_returns_no_answer_for_a_key_raises_an_error() -> None:
    async def nothing(_keys: Sequence[str]) -> dict[str, int]:
        return {}

    async def story(_source: Source) -> None:
        with pytest.raises(KeyError):
            await Gathering(nothing).ask("a")

    _run(story)


@pytest.mark.usefixtures("committed_db")
def test_concurrent_misses_of_a_key_load_its_answer_once() -> None:
    loaded: list[str] = []

    def load(key: str) -> str:
        loaded.append(key)
        if key == "gone":
            raise OSError(key)
        return key.upper()

    async def asked(memory: Remembered[str, str], *keys: str) -> list[str | BaseException]:
        return await asyncio.gather(*(executor.remembered(memory, key) for key in keys), return_exceptions=True)

    memory: Remembered[str, str] = Remembered(load, seconds=60)
    answers = asyncio.run(asked(memory, "a", "a", "b", "gone", "gone"))
    assert [answer for answer in answers if isinstance(answer, str)] == ["A", "A", "B"]
    assert sorted(loaded) == ["a", "b", "gone"]
    assert asyncio.run(asked(memory, "a", "b")) == ["A", "B"]
    assert len(loaded) == 3


def test_combined_calls_get_the_same_answers_as_single_calls() -> None:
    async def doubled(keys: Sequence[str]) -> dict[str, str]:
        await asyncio.sleep(0)
        return {key: key * 2 for key in keys}

    async def story() -> None:
        together = Gathering(doubled)
        keys = [str(number % 7) for number in range(50)]
        alone = [(await doubled([key]))[key] for key in keys]
        assert await asyncio.gather(*map(together.ask, keys)) == alone

    asyncio.run(story())
