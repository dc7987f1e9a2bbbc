"""Clients stop reading, in three ways. The memory that they cost is bounded, they are disconnected, and other clients are not affected."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conformance.reader import Subscriber
from tests.conformance.web_process import SERVERS
from tests.deadlines import eventually
from tests.faults.following import Follower, Following, latencies
from tests.faults.proxy import Proxy
from tests.faults.world import ROOT, Seeded, World

pytestmark = pytest.mark.fault

DEADLINE_SECONDS = 2.0
EVENTS, EVENT_BYTES = 600, 20_000
# Memory limit in bytes for each client that does not read: one write of the service, and the buffers of the web server and its sockets.
BYTES_PER_READER = 256 * 1024
_SLOWEST_NEIGHBOUR_SECONDS = 1.0
# A program that reads its first bytes, prints a line, and then reads everything, unless it is stopped.
_READING = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
connection.sendall(sys.argv[3].encode())
connection.recv(1000)
print("reading", flush=True)
while connection.recv(1000):
    pass
"""


def _headers(tenant: Seeded) -> dict[str, str]:
    return {"Host": tenant.host, "Authorization": f"Bearer {tenant.token}", "Last-Event-ID": tenant.start}


def _stuck(tenant: Seeded, address: tuple[str, int]) -> Subscriber:
    """Open a stream with a receive window of a few kilobytes."""
    return Subscriber(address, headers=_headers(tenant), receive_buffer=4096)


@contextmanager
def _stopped_process(tenant: Seeded, address: tuple[str, int]) -> Iterator[None]:
    """Run a reader that is stopped soon after it has started to read."""
    request = "\r\n".join(["GET /api/v2/events HTTP/1.1", *(f"{name}: {value}" for name, value in _headers(tenant).items()), "", ""])
    command = [sys.executable, "-c", _READING, address[0], str(address[1]), request]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            process.kill()


def test_clients_that_stop_reading_in_any_way_are_disconnected_and_delay_no_other_client(world: World, following: Following) -> None:
    tenant = world.tenant()
    with world.web(EVENTS_WRITE_DEADLINE_SECONDS=str(DEADLINE_SECONDS)) as web, Proxy(web.address) as half_open:
        world.lengthen_log(tenant, EVENTS, EVENT_BYTES)
        neighbour = Follower("neighbour", tenant, lambda: web.address, keep_bytes=False)
        following.add(neighbour)
        following.all_at(world.head(tenant), seconds=60)
        first = world.head(tenant).position
        before = web.resident_bytes()
        with world.writers(tenant, 1, think=0.02) as writers:
            eventually(lambda: writers.have_made(10), seconds=60)
            half_open.is_stalled = True
            unread = [_stuck(tenant, web.address) for _ in range(8)]
            with _stopped_process(tenant, web.address), _stopped_process(tenant, web.address):
                silent = [half_open_connection(tenant, half_open) for _ in range(3)]
                eventually(lambda: world.slots(tenant) > 8, seconds=20)
                grown = web.resident_bytes() - before
                eventually(lambda: world.slots(tenant) == 1, seconds=DEADLINE_SECONDS * 10)
                writers.stop()
                eventually(lambda: world.is_numbered(tenant))
                following.all_at(world.head(tenant))
            for stream in [*unread, *silent]:
                stream.close()
        assert web.resident_bytes() - before < 16 * 1024 * 1024
        following.stop()
    assert grown < 13 * BYTES_PER_READER + 8 * 1024 * 1024, f"{grown / 1024:.0f} KiB for 13 stopped readers"
    live = {position: moment for position, moment in world.recorded(tenant).items() if position > first}
    late = latencies([neighbour], live)
    assert late[int(len(late) * 0.99)] < _SLOWEST_NEIGHBOUR_SECONDS
    assert len(neighbour.sessions) == 1
    assert len(late) == len(live)


def half_open_connection(tenant: Seeded, proxy: Proxy) -> Subscriber:
    """Open a stream through a proxy that forwards the request and then stops reading the response."""
    return Subscriber(proxy.address, headers=_headers(tenant), answered=False)


@pytest.mark.parametrize("server", SERVERS)
def test_twenty_clients_that_never_read_use_a_bounded_amount_of_memory_on_every_server(server: str, world: World) -> None:
    tenant = world.tenant()
    with world.web(server, EVENTS_WRITE_DEADLINE_SECONDS="20") as web:
        world.lengthen_log(tenant, EVENTS, EVENT_BYTES)
        with Subscriber(web.address, headers=_headers(tenant), deadline=60) as warm:
            warm.opened()
            warm.events(EVENTS, within=60)
        before = web.resident_bytes()
        stuck = [_stuck(tenant, web.address) for _ in range(20)]
        peak = 0

        def is_full() -> bool:
            # The buffers are full when the memory has not grown in twenty consecutive samples.
            nonlocal peak
            now, last = web.resident_bytes(), peak
            peak = max(peak, now)
            quiet.append(now <= last)
            return len(quiet) > 20 and all(quiet[-20:])

        quiet: list[bool] = []
        eventually(is_full, seconds=15, pause=0.1)
        for stream in stuck:
            stream.close()
    print(f"{server}: {(peak - before) / 20 / 1024:.0f} KiB per stopped reader")  # noqa: T201  (the figure of this run)
    assert peak - before < 20 * BYTES_PER_READER, f"{(peak - before) / 20 / 1024:.0f} KiB per stopped reader"
