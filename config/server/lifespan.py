"""The life of a web process: what starts with it, and how it ends without cutting a stream.

Servers differ: one waits for open streams for ever, one cancels them at once, one speaks no lifespan at all. So the
signal comes to us first: streams are drained, then the server's own handler hears of it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from django.conf import settings
from django.urls import get_resolver

from config.server.hosts import Receive, Scope, Send
from events.log.database_identity import compare_at_start
from events.log.numbering import numberer
from events.stream.listeners import watch_over_readers
from events.stream.runtime import drain_runtime, runtime, stop_runtime

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_started: set[int] = set()


async def lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    """Speak the lifespan protocol: start what serves streams, and stop it after the last one has ended."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await begin()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await stop_runtime()
            if settings.EVENTS_NUMBERER_ENABLED:
                await asyncio.to_thread(numberer().stop)
            await send({"type": "lifespan.shutdown.complete"})
            return


async def begin() -> None:
    """Start what this process needs, once; also called by the first request, for servers without a lifespan."""
    if os.getpid() in _started:
        return
    _started.add(os.getpid())
    _warm_up()
    _drain_before_exit()
    watch_over_readers()
    if settings.EVENTS_NUMBERER_ENABLED and settings.WEB_ROLE != "stream":
        numberer().start()
    if settings.WEB_ROLE != "app":
        await runtime()
    await asyncio.to_thread(compare_at_start)


def is_begun() -> bool:
    return os.getpid() in _started


def _warm_up() -> None:
    # The first request would import every view while open streams wait for the interpreter: more than a second.
    if settings.WEB_ROLE != "stream":
        _ = get_resolver().url_patterns
    # What start-up made lives as long as the process; left out of full collections, those take milliseconds less.
    gc.collect()
    gc.freeze()
    # The next full collection waits until a quarter of what the last one found is new. That was everything frozen; now it is next
    # to nothing, so what ended streams leave behind goes soon.
    gc.collect()


def _drain_before_exit() -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        previous = signal.getsignal(number)
        if previous is not None:
            signal.signal(number, partial(_on_signal, loop, previous, []))


def _on_signal(loop: asyncio.AbstractEventLoop, previous: Any, seen: list[int], number: int, frame: FrameType | None) -> None:
    if seen:
        # Asked twice: no more waiting.
        _hand_on(previous, number, frame)
        return
    seen.append(number)
    loop.call_soon_threadsafe(_start_drain, partial(_hand_on, previous, number, None))


def _start_drain(hand_on: Callable[[], None]) -> None:
    task = asyncio.get_running_loop().create_task(drain_runtime())
    task.add_done_callback(lambda _: hand_on())


def _hand_on(previous: Any, number: int, frame: FrameType | None) -> None:
    if callable(previous):
        previous(number, frame)
    elif previous == signal.SIG_DFL:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
