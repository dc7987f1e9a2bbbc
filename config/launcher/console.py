"""Terminal output: messages of the launcher, and the lines of each process after the colored name of the process."""

from __future__ import annotations

import os
import sys
from collections import deque
from typing import TextIO

_RESET = "\x1b[0m"
_BOLD = "\x1b[1m"
_COLOURS = {"web": 36, "worker": 35, "beat": 33, "scim": 34, "postgres": 32, "redis": 31}
_WIDTH = 8
# The limit is per process, so that a verbose process does not displace the lines of other processes.
_MOST_HELD = 60


class Console:
    """Writes to one stream. Messages of the launcher are also written to `herald`, the output of the caller of a detached start."""

    def __init__(self, stream: TextIO = sys.stdout, herald: TextIO | None = None) -> None:
        self._stream = stream
        self.herald = herald
        self._held: dict[str, deque[str]] | None = {}
        self._has_colour = stream.isatty() and "NO_COLOR" not in os.environ

    def say(self, sentence: str) -> None:
        """Show a message of the launcher."""
        self._write(f"{_BOLD}{sentence}{_RESET}" if self._has_colour else sentence)
        if self.herald:
            try:
                print(sentence, file=self.herald, flush=True)
            except OSError:
                # The caller has exited. The log contains all messages.
                self.herald = None

    def show(self, name: str, line: str) -> None:
        """Show a line that the process `name` printed; during the start, lines are stored and not shown."""
        if self._held is not None:
            self._held.setdefault(name, deque(maxlen=_MOST_HELD)).append(line)
            return
        label = f"{name:<{_WIDTH}}|"
        if self._has_colour:
            label = f"\x1b[{_COLOURS.get(name, 37)}m{label}{_RESET}"
        self._write(f"{label} {line}")

    def release(self, *, with_held_lines: bool) -> None:
        """End the start: lines are shown from now on. `with_held_lines`, for a failed start, also shows the stored lines."""
        held, self._held = self._held or {}, None
        if with_held_lines:
            for name, lines in held.items():
                for line in lines:
                    self.show(name, line)

    def _write(self, text: str) -> None:
        try:
            print(text, file=self._stream, flush=True)
        except OSError:
            # A write to a closed terminal fails. This failure must not end the launcher: closing the terminal also causes SIGHUP, which
            # stops the launcher in order.
            return
