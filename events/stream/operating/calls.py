"""Calls: requests to every process that serves streams, and their answers.

A call goes to this process directly and to all other processes through one Redis channel. PUBLISH returns the number of listening
processes, which is the number of expected answers. So processes need not register themselves, and write nothing to Redis while no call is
sent. Without Redis, only this process answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import orjson
import redis
from django.conf import settings
from redis.exceptions import RedisError

from events.hints import publisher
from foundation.memory.redis_clients import async_redis_client, redis_client

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS = 1.0
_ANSWERS_LIVE_MS = 10_000
_REMEMBERED_CALLS = 256

Details = Mapping[str, Any]
Handler = Callable[[Details], Any]


def call_channel() -> str:
    """Return the channel to which every process with streams listens."""
    return f"{settings.REDIS_PREFIX}:stream-calls"


def process_name() -> str:
    """Return the name of this process, which pages show to operators."""
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to a call, and the number of processes that received the call but did not answer in time."""

    given: list[Any]
    silent_processes: int


class Callee:
    """Handles the calls of one event loop. `handlers` run in the loop and must be fast."""

    def __init__(self, url: str, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._loop = asyncio.get_running_loop()
        self._name = secrets.token_hex(8)
        self._redis = async_redis_client(url)
        self._answers: OrderedDict[str, bytes] = OrderedDict()
        self._replies: set[asyncio.Task[None]] = set()

    def hear(self, payload: bytes) -> None:
        """Read a call from the channel and answer the call; ignore any other payload."""
        try:
            call = orjson.loads(payload)
            answer = self._answer(call)
        except Exception:
            logger.exception("A call to the open streams failed.")
            return
        if call.get("wants_answer"):
            reply = self._loop.create_task(self._reply(call["id"], answer))
            self._replies.add(reply)
            reply.add_done_callback(self._replies.discard)

    def asked(self, call: Details) -> Future[bytes]:
        """Pass a call to the event loop from another thread of this process; the future gets the answer."""
        future: Future[bytes] = Future()

        def answer() -> None:
            try:
                future.set_result(self._answer(call))
            except Exception as error:  # noqa: BLE001  (the caller gets the exception)
                future.set_exception(error)

        # If the event loop has just closed, its streams have ended, and the future gets no answer.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(answer)
        return future

    @property
    def is_over(self) -> bool:
        """Tell whether the event loop is closed. It can be closed without a call of `close`."""
        return self._loop.is_closed()

    async def close(self) -> None:
        """Wait until the last answers are sent, and close the connection to Redis."""
        if self._replies:
            await asyncio.wait(self._replies, timeout=_PATIENCE_SECONDS)
        await self._redis.aclose()

    def _answer(self, call: Details) -> bytes:
        """Handle a call and store the answer. This process receives each of its own calls twice, directly and from the channel, and must
        handle it only once.
        """
        known = self._answers.get(call["id"])
        if known is not None:
            return known
        answer = orjson.dumps({"by": self._name, "answer": self._handlers[call["do"]](call)})
        self._answers[call["id"]] = answer
        if len(self._answers) > _REMEMBERED_CALLS:
            self._answers.popitem(last=False)
        return answer

    async def _reply(self, call_id: str, answer: bytes) -> None:
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                pipeline.rpush(_answers_key(call_id), answer)
                pipeline.pexpire(_answers_key(call_id), _ANSWERS_LIVE_MS)
                await pipeline.execute()
        except (RedisError, OSError) as error:
            logger.warning("a call was not answered: %s", type(error).__name__)


_callees: set[Callee] = set()


def attach(callee: Callee) -> None:
    """Pass calls of this process to `callee` directly."""
    _callees.add(callee)


def detach(callee: Callee) -> None:
    """Undo `attach`."""
    _callees.discard(callee)


def _own_callees() -> list[Callee]:
    """Return the callees of this process whose event loop is open. A closed event loop serves no streams."""
    _callees.difference_update([callee for callee in _callees if callee.is_over])
    return list(_callees)


def tell(do: str, tenant_id: str, **details: Any) -> None:
    """Send a call to every process with streams, without waiting for answers. Waits for Redis for at most 200 ms."""
    call = {"id": secrets.token_hex(8), "do": do, "tenant": tenant_id, **details}
    for callee in _own_callees():
        callee.asked(call)
    publisher().send(call_channel(), orjson.dumps(call))


def ask(do: str, tenant_id: str, **details: Any) -> Answers:
    """Send a call to every process with streams and wait up to one second for the answers. Must not be called in the thread of the event
    loop."""
    until = time.monotonic() + _PATIENCE_SECONDS
    call = {"id": secrets.token_hex(8), "do": do, "tenant": tenant_id, "wants_answer": True, **details}
    own = [callee.asked(call) for callee in _own_callees()]
    listeners = publisher().send(call_channel(), orjson.dumps(call)) or 0
    answers: dict[str, Any] = {}
    for future in own:
        with contextlib.suppress(TimeoutError):
            _note(future.result(max(until - time.monotonic(), 0.0)), answers)
    _collect(call["id"], answers, listeners, until)
    return Answers(list(answers.values()), max(listeners, len(own)) - len(answers))


def _collect(call_id: str, answers: dict[str, Any], expected: int, until: float) -> None:
    try:
        while len(answers) < expected and (left := until - time.monotonic()) > 0:
            found = cast("list[bytes] | None", _asker(settings.REDIS_URL).blpop([_answers_key(call_id)], timeout=left))
            if found is not None:
                _note(found[1], answers)
    except (RedisError, OSError) as error:
        logger.warning("answers of other processes were not read: %s", type(error).__name__)


def _note(answer: bytes, answers: dict[str, Any]) -> None:
    told = orjson.loads(answer)
    answers[told["by"]] = told["answer"]


def _answers_key(call_id: str) -> str:
    return f"{settings.REDIS_PREFIX}:stream-answers:{call_id}"


@lru_cache(maxsize=4)
def _asker(url: str) -> redis.Redis:
    return redis_client(url, answer_seconds=_PATIENCE_SECONDS + settings.REDIS_TIMEOUT_SECONDS)
