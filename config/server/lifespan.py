"""Starts the services of a web process, and lets its open streams end before the process ends.

ASGI servers differ. One server waits for open streams for ever, one cancels them at once, and one has no lifespan protocol. So this module,
and not the server, handles the signal that ends the process: it drains the streams, and then calls the handler of the server.
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
from django.db import connection
from django.urls import get_resolver

from config.server.hosts import Receive, Scope, Send
from events.log.database_identity import compare_at_start
from events.log.numbering import numberer
from events.stream.listeners import watch_over_readers
from events.stream.runtime import drain_runtime, runtime, stop_runtime
from foundation.database.loop_queries import close_loop_queries, open_loop_queries
from foundation.database.pooler import TransactionPooling, refuse_transaction_pooling
from foundation.tracing import spans as tracing
from identity.services.database_strategy import StrategyChanged, refuse_changed_strategy

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_started: set[int] = set()


async def lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    """Handle the lifespan protocol: start the services that streams need, and stop them after the last stream has ended."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await asyncio.to_thread(_judge_database)
            except (StrategyChanged, TransactionPooling) as refusal:
                await send({"type": "lifespan.startup.failed", "message": str(refusal)})
                return
            await begin()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await stop_runtime()
            await close_loop_queries()
            if settings.EVENTS_NUMBERER_ENABLED:
                await asyncio.to_thread(numberer().stop)
            await asyncio.to_thread(tracing.stop)
            await send({"type": "lifespan.shutdown.complete"})
            return


async def begin() -> None:
    """Start the services of this process, once. The first request also calls this function, for servers without a lifespan protocol."""
    if os.getpid() in _started:
        return
    _started.add(os.getpid())
    tracing.start()
    _warm_up()
    _drain_before_exit()
    watch_over_readers()
    if settings.EVENTS_NUMBERER_ENABLED and settings.WEB_ROLE != "stream":
        numberer().start()
    if settings.WEB_ROLE != "app":
        await runtime()
    if settings.WEB_ROLE != "stream":
        await open_loop_queries()
    await asyncio.to_thread(compare_at_start)


def _judge_database() -> None:
    try:
        refuse_transaction_pooling()
        refuse_changed_strategy()
    finally:
        connection.close()


def is_begun() -> bool:
    return os.getpid() in _started


def _warm_up() -> None:
    # Import every view now. The first request would do this otherwise, and open streams would wait more than a second for it.
    if settings.WEB_ROLE != "stream":
        _ = get_resolver().url_patterns
    # Objects made at start live as long as the process; excluding them from full garbage collections saves milliseconds.
    gc.collect()
    gc.freeze()
    # A full collection starts when new objects exceed a quarter of the objects that the last full collection found. This second
    # call finds nearly no objects, because all others are frozen. So a few new objects are enough to start the next full
    # collection, and the garbage of ended streams is collected soon.
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
        # This is the second signal to end the process: do not wait for the streams any longer.
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
