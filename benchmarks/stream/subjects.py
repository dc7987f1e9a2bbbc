"""A measured server that streams events to subscribers of channels, and the code that publishes events to this server."""

from __future__ import annotations

import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from config.launcher.options import Options
from config.launcher.processes import Process, Program, wait_until_ready

# The number of an event follows these letters, with a fixed number of digits, so that every event has the same size.
MARK = "bench-"
_DIGITS = 7
_RECEIVE_BYTES = 65536
_LINES_SHOWN = 25


@dataclass(frozen=True)
class Shape:
    """The distribution of streams: the number of channels or tenants, and of streams for each."""

    channels: int
    each: int

    @property
    def streams(self) -> int:
        return self.channels * self.each

    def __str__(self) -> str:
        return f"{self.channels} x {self.each}"


class Subject(Protocol):
    """A running server under measurement."""

    name: str
    address: tuple[str, int]

    def pids(self) -> list[int]:
        """Return the processes whose processor time and memory are measured."""

    def requests(self, shape: Shape, *, own_tokens: bool = False) -> list[bytes]:
        """Return the request of each stream, channel by channel. With `own_tokens`, each stream has its own token."""

    def publish(self, channel: int, number: int, count: int = 1) -> float:
        """Send events with the numbers `number`, `number + 1`, ... to one channel. Return the time of the commit, or, for servers other
        than this service, the time when the first event was sent."""


# A function that starts a server, and ends the server when the block ends.
Starter = Callable[[], AbstractContextManager[Subject]]


def marked(number: int) -> str:
    """Return the text that identifies the event with this number."""
    return f"{MARK}{number:0{_DIGITS}d}"


def renumbered(template: bytes, number: int) -> bytes:
    """Return the same bytes with the number of another event."""
    return re.sub(rb"bench-\d{7}", marked(number).encode(), template)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def web_options(directory: Path, port: int, *, server: str = "uvicorn", processes: int = 1) -> Options:
    """Return the options of a server on this port, as in production."""
    return Options(
        data_dir=directory,
        port=port,
        scim_port=port,
        is_tls=False,
        is_detached=False,
        database_url="",
        redis_url="",
        web_server=server,
        web_processes=processes,
    )


@contextmanager
def running(name: str, command: Sequence[str], port: int, *, directory: Path, environment: Mapping[str, str]) -> Iterator[Process]:
    """Run a server until the block ends; the server also ends with this process."""
    log = directory / f"{'-'.join(name.split())}.log"
    program = Program(name=name, command=tuple(command), is_ready=lambda: listens(port), environment=environment, grace_seconds=5.0)
    with log.open("wb") as output:
        process = Process.start(program, output=output)
    try:
        wait_until_ready(process, log=log)
        yield process
    finally:
        process.kill()
        _show_failures(log)


def _show_failures(log: Path) -> None:
    text = log.read_text(errors="replace")
    if "Traceback" in text:
        print(f"{log.name} contains an error:", *text.splitlines()[-_LINES_SHOWN:], sep="\n  ", file=sys.stderr, flush=True)


class Publisher:
    """A persistent connection that publishes each event with one request; the requests are pipelined."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def publish(self, path: str, bodies: Sequence[bytes]) -> float:
        """Send one POST request per body, wait until all are answered, and return the time when the first request was sent."""
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        wire = b"".join(head.encode() + str(len(body)).encode() + b"\r\n\r\n" + body for body in bodies)
        started = time.monotonic()
        self._socket.sendall(wire)
        answered = b""
        while (count := len(re.findall(rb"HTTP/1\.1 20\d", answered))) < len(bodies):
            data = self._socket.recv(_RECEIVE_BYTES)
            if not data:
                raise ConnectionResetError(f"{count} of {len(bodies)} publish requests were answered")
            answered += data
        return started

    def close(self) -> None:
        self._socket.close()
