"""Request bodies that clients begin and do not finish, over real sockets. Their memory is bounded and is freed."""

from __future__ import annotations

import http.client
import selectors
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from identity.models import Tenant
from tests.authapi.token_forms import form_of
from tests.conformance.web_process import WebProcess, web_process
from tests.deadlines import eventually
from tests.factories.authapi import granted_client

MIB = 1024 * 1024
COUNT = 1000
BODY = b"x" * (MIB - 1)


@pytest.fixture
def web(tenant: Tenant) -> Iterator[WebProcess]:
    with web_process("uvicorn") as running:
        yield running


def resident(web: WebProcess) -> int:
    """Return the resident memory of the process in bytes."""
    status = Path(f"/proc/{web.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024


def asked(web: WebProcess, tenant: Tenant, *, source: str = "127.0.0.1") -> int:
    """Request a page and return its status."""
    with closing(http.client.HTTPConnection(*web.address, timeout=30, source_address=(source, 0))) as connection:
        connection.request("GET", "/u/logged-out", headers={"Host": f"{tenant.pk}.example.test"})
        return connection.getresponse().status


class Unfinished:
    """Connections from many IP addresses. Each connection announces a body of one MiB and sends all bytes except the last byte."""

    def __init__(self, web: WebProcess, tenant: Tenant, *, count: int, addresses: int) -> None:
        head = f"POST /u/login HTTP/1.1\r\nHost: {tenant.pk}.example.test\r\nContent-Length: {MIB}\r\n\r\n".encode()
        self._left: dict[socket.socket, memoryview] = {}
        self._stack = ExitStack()
        for number in range(count):
            client = self._stack.enter_context(socket.socket())
            client.bind((f"127.0.{1 + number % addresses // 250}.{1 + number % addresses % 250}", 0))
            client.connect(web.address)
            client.setblocking(False)
            self._left[client] = memoryview(head + BODY)

    def refused(self) -> int:
        """Return the number of these connections that the server has answered or closed."""
        with selectors.DefaultSelector() as selector:
            for client in self._left:
                selector.register(client, selectors.EVENT_READ)
            return len(selector.select(0))

    def send_all(self) -> None:
        """Send until every byte is accepted or the connection is closed."""
        with selectors.DefaultSelector() as selector:
            for client in self._left:
                selector.register(client, selectors.EVENT_WRITE, client)
            while selector.get_map():
                for key, _ in selector.select(10):
                    if not self._sends_on(key.data):
                        selector.unregister(key.data)

    def _sends_on(self, client: socket.socket) -> bool:
        try:
            self._left[client] = self._left[client][client.send(self._left[client][: 256 * 1024]) :]
        except BlockingIOError:
            return True
        except OSError:
            return False
        return bool(self._left[client])

    def leave(self) -> None:
        self._stack.close()


@pytest.mark.slow
def test_memory_of_unfinished_bodies_is_bounded_and_freed(web: WebProcess, tenant: Tenant) -> None:
    assert asked(web, tenant) == 200
    before = resident(web)
    bodies = Unfinished(web, tenant, count=COUNT, addresses=COUNT)
    try:
        bodies.send_all()
        # The server keeps at most 64 bodies of a MiB, and refuses all others.
        eventually(lambda: bodies.refused() >= COUNT - 70, seconds=60)
        # Without the bound, the bodies would use 1,000 MiB. The server frees refused bodies at once, even while clients are connected.
        eventually(lambda: resident(web) - before < 120 * MIB, seconds=60)
        # The server still serves other requests.
        assert asked(web, tenant) == 200
    finally:
        bodies.leave()
    eventually(lambda: resident(web) - before < 20 * MIB, seconds=60)


def test_unfinished_bodies_do_not_block_a_token_request_from_the_same_ip_address(web: WebProcess, tenant: Tenant) -> None:
    registered = granted_client(tenant)
    bodies = Unfinished(web, tenant, count=20, addresses=1)
    try:
        bodies.send_all()
        eventually(lambda: bodies.refused() >= 16)
        with closing(http.client.HTTPConnection(*web.address, timeout=30, source_address=("127.0.1.1", 0))) as connection:
            headers = {"Host": f"{tenant.pk}.example.test", "Content-Type": "application/x-www-form-urlencoded"}
            connection.request("POST", "/oauth/token", "&".join(f"{k}={v}" for k, v in form_of(tenant, registered).items()), headers)
            assert connection.getresponse().status == 200
    finally:
        bodies.leave()
