"""Handles Ctrl+C and SIGTERM: a signal ends a wait immediately. Other work is finished first, so no event is written in part."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType


class Stopped(Exception):
    """The process got a signal to stop; `number` is the number of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def exit_status(self) -> int:
        """Return the exit status that shells expect from a process that a signal has ended."""
        return 128 + self.number


class Stopping:
    """Handles Ctrl+C and SIGTERM inside its block. `with stopping.interruptible:` marks the waits that a signal may end."""

    def __init__(self) -> None:
        self.interruptible = _Interruptible(self)
        self.asked: int | None = None
        self.is_waiting = False
        self._before: dict[int, signal._HANDLER] = {}

    def check(self) -> None:
        """Raise `Stopped` if a signal arrived during uninterruptible work."""
        if self.asked is not None:
            raise Stopped(self.asked)

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        self.asked = number
        if self.is_waiting:
            self.is_waiting = False
            raise Stopped(number)

    def __enter__(self) -> Stopping:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._asked)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


class _Interruptible:
    def __init__(self, stopping: Stopping) -> None:
        self._stopping = stopping

    def __enter__(self) -> None:
        # Set the flag before the check: the check then finds a signal that arrived before the flag was set.
        self._stopping.is_waiting = True
        if self._stopping.asked is not None:
            self._stopping.is_waiting = False
            self._stopping.check()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopping.is_waiting = False
