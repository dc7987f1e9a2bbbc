"""Servers with defects that a test selects: they cut connections, delay, compress, refuse, or lose state."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

CHUNKED = b"""\
HTTP/1.1 200 OK\r
Content-Type: text/event-stream; charset=utf-8\r
Cache-Control: no-store, no-transform\r
Transfer-Encoding: chunked\r
"""


@dataclass(frozen=True)
class Request:
    """One received request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query)


@dataclass
class Wire:
    """One connection, which the script of a server controls."""

    socket: socket.socket
    closing: threading.Event

    def send(self, content: bytes) -> None:
        self.socket.sendall(content)

    def chunk(self, content: bytes) -> None:
        if content:
            self.send(b"%x\r\n%b\r\n" % (len(content), content))

    def stream(self, content: bytes, *, end: bool = True, extra: bytes = b"") -> None:
        """Answer with an event stream. If `end` is false, the connection closes without the chunk that ends the body."""
        self.send(CHUNKED + extra + b"\r\n")
        self.chunk(content)
        if end:
            self.send(b"0\r\n\r\n")

    def hold(self) -> None:
        """Send nothing more until the client disconnects or the test ends."""
        self.socket.settimeout(0.05)
        while not self.closing.is_set():
            try:
                if not self.socket.recv(1):
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    def answer(self, status: int, body: bytes = b"", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Said", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers, "", ""]
        self.send("\r\n".join(lines).encode() + body)


Script = Callable[[Request, Wire], None]


@dataclass
class Misbehaving:
    """A server that answers each request with `script`. `requests` contains the received requests in order."""

    script: Script
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https://localhost' if self.tls else 'http://127.0.0.1'}:{self.port}"
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def streams(self) -> list[Request]:
        return [request for request in self.requests if request.path.endswith("/events")]

    def close(self) -> None:
        self._closing.set()
        # Closing the listener does not wake the thread that waits for a connection, so open a last connection.
        with socket.create_connection(("127.0.0.1", self.port)):
            self._accepting.join(10)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            accepted, _ = self._listener.accept()
            if self._closing.is_set():
                accepted.close()
                return
            self._threads.append(threading.Thread(target=self._serve, args=(accepted,), daemon=True))
            self._threads[-1].start()

    def _serve(self, accepted: socket.socket) -> None:
        with ExitStack() as connection:
            connection.enter_context(accepted)
            try:
                wire = connection.enter_context(self.tls.wrap_socket(accepted, server_side=True)) if self.tls else accepted
                request = _read(wire)
                if request is not None:
                    self.requests.append(request)
                    self.script(request, Wire(wire, self._closing))
            except OSError:
                # The client has disconnected, as many tests expect.
                return
            except BaseException as error:
                self.failures.append(error)


@contextmanager
def misbehaving(script: Script, *, tls: ssl.SSLContext | None = None) -> Iterator[Misbehaving]:
    server = Misbehaving(script, tls)
    try:
        yield server
    finally:
        server.close()
    assert server.failures == []


def _read(accepted: socket.socket) -> Request | None:
    accepted.settimeout(10)
    wire = b""
    while b"\r\n\r\n" not in wire:
        piece = accepted.recv(65536)
        if not piece:
            return None
        wire += piece
    head, _, body = wire.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += accepted.recv(65536)
    method, target, _ = first.split(" ")
    return Request(method, target, headers, body)


@contextmanager
def cutting_proxy(origin: tuple[str, int], budget: Callable[[int], int | None]) -> Iterator[Misbehaving]:
    """Forward connections to a real server. Cut the nth connection after `budget(n)` bytes of its response, or never if the budget is
    None."""
    numbers = iter(range(1_000_000))

    def forward(request: Request, wire: Wire) -> None:
        left = budget(next(numbers))
        lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in request.headers.items())]
        with socket.create_connection(origin, timeout=0.05) as upstream:
            upstream.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + request.body)
            while not wire.closing.is_set() and (left is None or left > 0):
                try:
                    piece = upstream.recv(65536)
                except TimeoutError:
                    if _has_left(wire.socket):
                        return
                    continue
                if not piece:
                    return
                wire.send(piece if left is None else piece[:left])
                left = None if left is None else left - len(piece)

    with misbehaving(forward) as server:
        yield server


def _has_left(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    finally:
        client.settimeout(10)


def gzipped(content: bytes) -> bytes:
    return gzip.compress(content)
