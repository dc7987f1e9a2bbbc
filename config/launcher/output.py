"""The output of a process: whole lines are shown as they come, and the last lines are kept for the error message."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import IO

_KEPT_LINES = 200


class Output:
    """Reads the pipe of one process without blocking."""

    def __init__(self, pipe: IO[bytes], show: Callable[[str], None]) -> None:
        self.pipe = pipe
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._show = show
        self._unfinished = b""
        os.set_blocking(pipe.fileno(), False)

    def read(self) -> bool:
        """Show the lines that are available; return False at the end of the output."""
        chunk = self.pipe.read(65536)
        if chunk is None:
            return True
        *lines, self._unfinished = (self._unfinished + chunk).split(b"\n")
        for line in lines:
            self._take(line)
        return bool(chunk)

    def close(self) -> None:
        """Show the remaining lines and close the pipe. Do not wait for its end: descendants of the process may still write to it."""
        if self.pipe.closed:
            return
        self.read()
        if self._unfinished:
            self._take(self._unfinished)
            self._unfinished = b""
        self.pipe.close()

    def last_words(self) -> str:
        """Return the last lines on one line."""
        lines = [line.strip() for line in self.lines if line.strip()]
        return " | ".join(lines[-3:]) or "it printed nothing."

    def _take(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip("\r")
        self.lines.append(text)
        self._show(text)
