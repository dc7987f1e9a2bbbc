"""Two programs in C that need less processor time than any server: the reader of many streams, and the bare sender.

The bare sender is the smallest possible server: it sends the same bytes to every client. Without a C compiler, a reader in Python replaces
the reader in C, and the sender is omitted. The reader in Python is too slow for the fastest servers, so the figures of these servers are
too low without a compiler.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_ANSWER_SECONDS = 120.0


@dataclass(frozen=True)
class Count:
    """The counts of the reader since the last reset. Times are seconds of the machine's monotonic clock."""

    streams: int
    refused: int
    ended: int
    frames: int
    least: int
    most: int
    bytes: int
    started: float
    first: float
    last: float
    processor: float


class Reader:
    """The reader process, which is controlled by lines of text; see `reader.c` for the commands."""

    def __init__(self, process: subprocess.Popen[str], directory: Path) -> None:
        self._process = process
        self._requests = directory / "requests"

    def open(self, requests: Sequence[bytes], *, window: int = 64, seconds: float = 60.0) -> Count:
        """Open one connection per request; return when every response has begun or the time is over."""
        self._requests.write_bytes(b"".join(len(request).to_bytes(4, sys.byteorder) + request for request in requests))
        return self._asked(f"open {self._requests} {window} {int(seconds * 1000)}")

    def wait(self, frames: int, *, seconds: float = 30.0) -> Count:
        """Wait until this many frames have arrived since the last reset."""
        return self._asked(f"wait {frames} {int(seconds * 1000)}")

    def reset(self) -> Count:
        return self._asked("reset")

    def close(self) -> Count:
        return self._asked("close")

    def mark(self, prefix: str = "") -> None:
        """From now on, record the arrival of each frame that contains this prefix followed by a number."""
        self._asked(f"mark {prefix}")

    def arrivals(self) -> list[tuple[int, int, float]]:
        """Return the recorded arrivals as number, stream and second, and clear them."""
        return [(number, stream, at / 1e9) for number, stream, at in self._answer("arrivals")["arrivals"]]

    def _asked(self, command: str) -> Count:
        told = self._answer(command)
        seconds = {name: told[f"{name}_ns"] / 1e9 for name in ("started", "first", "last")}
        counted = {name: told[name] for name in ("streams", "refused", "ended", "frames", "least", "most", "bytes")}
        return Count(**counted, **seconds, processor=told["cpu_ns"] / 1e9)

    def _answer(self, command: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the reader ended with status {self._process.wait(_ANSWER_SECONDS)}")
        told: dict[str, Any] = json.loads(line)
        return told


@dataclass(frozen=True)
class Programs:
    """Directory of the compiled programs; None without a compiler."""

    directory: Path
    reader_program: Path | None
    sender_program: Path | None

    @contextmanager
    def reader(self, address: tuple[str, int]) -> Iterator[Reader]:
        """Run a reader of the server at this address. The reader ends when its standard input is closed, so it also ends when this process
        ends.
        """
        program = [str(self.reader_program)] if self.reader_program else [sys.executable, str(HERE / "plain_reader.py")]
        command = [*program, address[0], str(address[1])]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            try:
                yield Reader(process, self.directory)
            finally:
                process.kill()


def build(directory: Path) -> Programs:
    """Compile the programs into a directory."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    built: dict[str, Path | None] = {}
    for name in ("reader", "sender"):
        program = directory / name
        command = [compiler or "cc", "-O2", "-o", str(program), str(HERE / f"{name}.c")]
        built[name] = program if compiler and subprocess.run(command, check=False).returncode == 0 else None
    return Programs(directory, built["reader"], built["sender"])
