"""Our own service as a measured server: the web process of production, on uvicorn or on Daphne."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.stream.subjects import Shape, Starter, Subject, free_port, running, web_options
from benchmarks.stream.usage import family
from benchmarks.stream.world import World
from config.launcher import web
from config.launcher.processes import Process

# Limits are active as in production, but high enough that they are never reached.
UNLIMITED = {
    "RATE_LIMIT_PER_SECOND": "1000000",
    "RATE_LIMIT_BURST": "1000000",
    "EVENTS_MAX_CONNECTIONS_PER_PROCESS": "20000",
    "EVENTS_LIFETIME_SECONDS": "7200",
}


class Ours:
    """A running group of web processes."""

    def __init__(self, name: str, port: int, process: Process, world: World) -> None:
        self.name = name
        self.address = ("127.0.0.1", port)
        self._process = process
        self._world = world

    def pids(self) -> list[int]:
        return family(self._process.pid)

    def requests(self, shape: Shape, *, own_tokens: bool = False) -> list[bytes]:
        """Return the request of each stream. Without `own_tokens`, all streams of a tenant use the same token."""
        requests = []
        for member in self._world.members(shape.channels):
            token = member.token()
            requests += [member.subscription(member.token() if own_tokens else token) for _ in range(shape.each)]
        return requests

    def publish(self, channel: int, number: int, count: int = 1) -> float:
        """Save a user `count` times in one transaction. After the commit, this process numbers the events, as every writer does."""
        return self._world.members(channel + 1)[channel].write(number, count)


def ours(name: str, server: str, world: World, directory: Path, *, processes: int = 1) -> Starter:
    """Return a function that starts this service on the ASGI server `server`."""

    @contextmanager
    def start() -> Iterator[Subject]:
        port = free_port()
        options = web_options(directory, port, server=server, processes=processes)
        environment = os.environ | UNLIMITED
        with running(name, web.command(options, None), port, directory=directory, environment=environment) as process:
            yield Ours(name, port, process, world)

    return start
