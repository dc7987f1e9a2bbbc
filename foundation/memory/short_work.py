"""Fast path: threads for work of less than a millisecond that may wait for Redis, such as noting a used proof.

The plain path is `foundation.memory.executor.run`, whose futures, locks and wake-ups take a third of the time of a signature. In this
module, a busy thread is not woken for each piece of work. Results that accumulate are returned with one wake-up of the event loop.
docs/figures.md has the measurement.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from queue import SimpleQueue
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Result = TypeVar("Result")

_THREADS = 3


class _Finished:
    """Results that are not yet returned to the callers on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._answers: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._is_told = False

    def note(self, answer: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        """Store a result, and let the event loop return it soon. Called by the threads."""
        self._answers.append((answer, result, error))
        # `_hand_back` clears the flag before it reads the results. So a result that is added now is returned by the call that is running,
        # or by a later call.
        if not self._is_told:
            self._is_told = True
            self.loop.call_soon_threadsafe(self._hand_back)

    def _hand_back(self) -> None:
        self._is_told = False
        while self._answers:
            answer, result, error = self._answers.popleft()
            if answer.done():
                # The caller was canceled.
                continue
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)


class ShortWork:
    """The threads of this process. They start with the first piece of work, and end with the process."""

    def __init__(self, threads: int) -> None:
        self._waiting: SimpleQueue[tuple[_Finished, asyncio.Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._finished: WeakKeyDictionary[asyncio.AbstractEventLoop, _Finished] = WeakKeyDictionary()
        for number in range(threads):
            threading.Thread(target=self._work, name=f"short-work-{number}", daemon=True).start()

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run `work` in one of the threads. Work begins in the order of the calls. Raises the exceptions of `work`."""
        loop = asyncio.get_running_loop()
        finished = self._finished.get(loop)
        if finished is None:
            finished = self._finished[loop] = _Finished(loop)
        answer: asyncio.Future[Result] = loop.create_future()
        self._waiting.put((finished, answer, work))
        return await answer

    def _work(self) -> None:
        while True:
            finished, answer, work = self._waiting.get()
            result, error = None, None
            try:
                result = work()
            except BaseException as raised:  # noqa: BLE001  (passed on to the caller)
                error = raised
            try:
                finished.note(answer, result, error)
            except RuntimeError:
                # The event loop is closed, so no caller waits for the result.
                continue
            finally:
                del finished, answer, work, result, error


@lru_cache(maxsize=1)
def short_work() -> ShortWork:
    """Return the threads of this process."""
    return ShortWork(_THREADS)
