"""Calls over a real Redis, without Redis, and with a process that does not answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from django.conf import settings
from pytest_django import Settings

from events.hints import HintListener
from events.stream.operating import calls
from events.stream.operating.calls import Callee, ask, attach, call_channel, detach, tell
from tests.deadlines import own_time


class Process:
    """The part of a web process that handles calls. It stores each call, and answers with the name of the process and the tenant."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard: list[Any] = []
        self.connected = asyncio.Event()
        self.callee = Callee(settings.REDIS_URL, {"describe": self._describe})
        self.listener = HintListener(
            settings.REDIS_URL, heard=lambda *_: None, connected=self.connected.set, also={call_channel(): self.callee.hear}
        )
        self.task = asyncio.create_task(self.listener.run())

    def _describe(self, call: Any) -> list[str]:
        self.heard.append(call)
        return [self.name, call["tenant"]]

    async def stop(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task
        await self.callee.close()


def _run(story: Callable[[], Awaitable[None]]) -> None:
    async def told() -> None:
        async with asyncio.timeout(15):
            await story()

    asyncio.run(told())


async def _answers(count: int) -> list[Any]:
    """Repeat a call until every process has subscribed: a new `Process` does not wait until Redis has confirmed its subscription."""
    while True:
        answers = await asyncio.to_thread(ask, "describe", "acme")
        if len(answers.given) + answers.silent_processes == count:
            return sorted(answers.given)


@pytest.fixture(autouse=True)
def own_channel(settings: Settings) -> None:
    settings.REDIS_PREFIX = f"{settings.REDIS_PREFIX}:{time.monotonic_ns()}"


def test_every_process_answers_once() -> None:
    async def story() -> None:
        one, two = Process("one"), Process("two")
        try:
            assert await _answers(2) == [["one", "acme"], ["two", "acme"]]
        finally:
            await one.stop()
            await two.stop()

    _run(story)


def test_a_call_received_directly_and_through_the_channel_is_handled_once() -> None:
    async def story() -> None:
        process = Process("one")
        attach(process.callee)
        try:
            await _answers(1)
            process.heard.clear()
            await asyncio.to_thread(tell, "describe", "acme")
            # The channel keeps the order of calls, so the first call has arrived when this second call is answered.
            assert await _answers(1) == [["one", "acme"]]
            assert len(process.heard) == 2
        finally:
            detach(process.callee)
            await process.stop()

    _run(story)


def test_a_call_waits_one_second_and_then_counts_the_silent_processes() -> None:
    async def story() -> None:
        process, silent = Process("one"), Process("silent")
        silent.callee._handlers = {}
        try:
            while True:
                with own_time() as asking:
                    answers = await asyncio.to_thread(ask, "describe", "acme")
                if answers.silent_processes == 1 and answers.given:
                    break
            assert answers.given == [["one", "acme"]]
            assert asking.seconds < 2.0
        finally:
            await process.stop()
            await silent.stop()

    _run(story)


def test_a_call_does_not_wait_for_a_process_whose_event_loop_has_ended() -> None:
    async def leave() -> None:
        attach(Callee(settings.REDIS_URL, {"describe": lambda _call: ["gone"]}))

    asyncio.run(leave())
    with own_time() as asking:
        assert ask("describe", "acme") == calls.Answers([], 0)
    assert asking.seconds < 0.5


def test_without_redis_a_call_reaches_only_the_calling_process_and_does_not_wait(settings: Settings) -> None:
    async def story() -> None:
        process = Process("one")
        attach(process.callee)
        try:
            with own_time() as asking:
                answers = await asyncio.to_thread(ask, "describe", "acme")
            assert answers == calls.Answers([["one", "acme"]], 0)
            assert asking.seconds < 0.5
        finally:
            detach(process.callee)
            await process.stop()

    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    _run(story)


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b'{"id":"x"}', b'{"id":"x","do":"nothing"}', b"\xff"])
def test_payloads_that_are_not_calls_are_ignored(payload: bytes) -> None:
    async def story() -> None:
        process = Process("one")
        process.callee.hear(payload)
        assert process.heard == []
        await process.stop()

    _run(story)
