"""The HTTP protocol of the web server on real sockets: bounded request heads, and responses that the application writes itself."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Collection, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import uvicorn

from config import http_protocol
from config.http_protocol import HEAD_BYTES, MOST_HEADERS, HttpProtocol
from config.server import http_flow
from config.server.uvicorn_insides import STREAM, UnknownUvicorn, Wire, require_known
from tests.deadlines import eventually

_GET = b"GET /stream HTTP/1.1\r\nhost: a\r\n\r\n"
_HEADERS = [(b"content-type", b"text/event-stream")]


class Application:
    """Takes over the responses of /stream, and answers all other requests with their path."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.wires: list[Wire] = []
        self.gone = 0
        self.may_answer = threading.Event()
        self.connections: Callable[[], Collection[object]] = tuple

    async def __call__(self, scope: MutableMapping[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        self.loop = asyncio.get_running_loop()
        if scope["path"].startswith("/late"):
            await asyncio.to_thread(self.may_answer.wait, 10)
        if scope["path"] in {"/stream", "/late-stream"}:
            wire: Wire = scope["extensions"][STREAM](_HEADERS)
            wire.watch(self._note_gone)
            self.wires.append(wire)
            return
        if scope["path"] == "/echo":
            await receive()
        if scope["path"] == "/headers":
            while (await receive()).get("more_body"):
                pass
            await _send_pieces(send, [name for name, _ in scope["headers"]])
            return
        if scope["path"] == "/large":
            await _send_pieces(send, [b"a" * 20_000_000])
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(scope["raw_path"]))]})
        await send({"type": "http.response.body", "body": scope["raw_path"]})

    def _note_gone(self) -> None:
        self.gone += 1

    def wire(self) -> Wire:
        """Wait until the only stream is open, and return its writer."""
        eventually(lambda: bool(self.wires))
        return self.wires[0]

    def write(self, body: bytes) -> bool:
        """Write one chunk from the event loop. Return what `Wire.write` returns."""
        wire, chunk = self.wire(), b"%x\r\n%b\r\n" % (len(body), body)
        return self._on_the_loop(lambda: wire.write(body, chunk))

    def send(self, body: bytes, *, more: bool = True) -> None:
        """Write one chunk as an ASGI message and wait for it."""
        assert self.loop is not None
        sending = self.wire().send({"type": "http.response.body", "body": body, "more_body": more})
        asyncio.run_coroutine_threadsafe(sending, self.loop).result(10)

    def _on_the_loop(self, work: Callable[[], bool]) -> bool:
        async def done() -> bool:
            return work()

        assert self.loop is not None
        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(10)


async def _send_pieces(send: Callable[[Any], Any], pieces: list[bytes]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece + b";", "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


@contextmanager
def _serving(application: Any, *, keep_alive: int = 5) -> Iterator[tuple[str, int]]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            application, http=HttpProtocol, ws="none", lifespan="off", log_level="critical", access_log=False, timeout_keep_alive=keep_alive
        )
        server = uvicorn.Server(config)
        if isinstance(application, Application):
            application.connections = lambda: server.server_state.connections
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            eventually(lambda: server.started)
            yield listening.getsockname()
        finally:
            server.should_exit = server.force_exit = True
            thread.join(10)


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
def client(application: Application) -> Iterator[socket.socket]:
    with _serving(application) as address, socket.create_connection(address, timeout=10) as connected:
        yield connected


def _read_until(client: socket.socket, ending: bytes) -> bytes:
    read = b""
    while not read.endswith(ending):
        more = client.recv(65536)
        assert more, f"the connection ended after {read!r}"
        read += more
    return read


def _say_without_end(client: socket.socket, piece: bytes) -> None:
    # Many pieces are needed: after the server has closed the connection, the first writes only fill buffers and do not fail.
    for _ in range(256 * HEAD_BYTES // len(piece)):
        client.sendall(piece)


def _read_to_the_end(client: socket.socket) -> bytes:
    read = b""
    while more := client.recv(65536):
        read += more
    return read


def test_an_endless_request_head_is_refused(client: socket.socket) -> None:
    client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n")
    line = b"x-more: " + b"a" * 1000 + b"\r\n"
    with pytest.raises(ConnectionError):
        _say_without_end(client, line)


def test_a_head_that_is_too_long_gets_431(client: socket.socket) -> None:
    client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nx-more: " + b"a" * HEAD_BYTES)
    assert client.recv(65536).startswith(b"HTTP/1.1 431 ")


def _is_parked(size: int) -> bool:
    return HttpProtocol.all_parked_bytes >= size


def test_incomplete_heads_of_all_connections_share_a_bound_and_short_heads_still_fit(
    monkeypatch: pytest.MonkeyPatch, application: Application
) -> None:
    monkeypatch.setattr(http_protocol, "ALL_HEADS_BYTES", 100_000)
    half = b"GET / HTTP/1.1\r\nhost: a\r\nx-more: " + b"a" * 40_000
    before = HttpProtocol.all_parked_bytes
    with _serving(application) as address:
        parked = [socket.create_connection(address, timeout=10) for _ in range(3)]
        for number, connected in enumerate(parked, start=1):
            connected.sendall(half)
            eventually(partial(_is_parked, before + min(number, 2) * 40_000))
        assert parked[2].recv(65536).startswith(b"HTTP/1.1 431 ")
        with socket.create_connection(address, timeout=10) as ordinary:
            ordinary.sendall(b"GET /ordinary HTTP/1.1\r\nhost: a\r\n\r\n")
            assert _read_until(ordinary, b"/ordinary").startswith(b"HTTP/1.1 200 ")
        for connected in parked:
            connected.close()
        eventually(lambda: HttpProtocol.all_parked_bytes == before)
        with socket.create_connection(address, timeout=10) as again:
            again.sendall(half + b"\r\n\r\n")
            assert _read_until(again, b"/").startswith(b"HTTP/1.1 200 ")


def test_a_long_body_does_not_count_as_a_long_head(client: socket.socket) -> None:
    body = b"a" * (3 * HEAD_BYTES)
    client.sendall(b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    assert _read_until(client, b"/echo").startswith(b"HTTP/1.1 200 ")


def test_a_head_that_arrives_too_slowly_gets_408(monkeypatch: pytest.MonkeyPatch, application: Application) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.3)
    with _serving(application) as address, socket.create_connection(address, timeout=10) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost:")
        assert _read_to_the_end(client).startswith(b"HTTP/1.1 408 ")


def test_a_silent_connection_is_closed(monkeypatch: pytest.MonkeyPatch, application: Application) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.3)
    with _serving(application) as address, socket.create_connection(address, timeout=10) as client:
        assert _read_to_the_end(client) == b""


def test_the_head_of_the_second_request_on_a_connection_also_has_a_deadline(
    monkeypatch: pytest.MonkeyPatch, application: Application
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.3)
    with _serving(application) as address, socket.create_connection(address, timeout=10) as client:
        client.sendall(b"GET /first HTTP/1.1\r\nhost: a\r\n\r\n")
        _read_until(client, b"/first")
        client.sendall(b"GET /second HTTP/1.1\r\n")
        assert _read_to_the_end(client).startswith(b"HTTP/1.1 408 ")


def test_the_application_can_write_chunks_itself_and_the_connection_stays_open(application: Application, client: socket.socket) -> None:
    client.sendall(_GET)
    head = _read_until(client, b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"transfer-encoding: chunked\r\n" in head
    assert b"connection: close" not in head
    assert application.write(b"one")
    application.send(b"two")
    application.send(b"", more=False)
    assert _read_until(client, b"0\r\n\r\n") == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
    client.sendall(b"GET /next HTTP/1.1\r\nhost: a\r\n\r\n")
    assert _read_until(client, b"/next").startswith(b"HTTP/1.1 200 ")


def test_an_http_1_0_client_gets_an_unchunked_response_that_ends_with_the_connection(
    application: Application, client: socket.socket
) -> None:
    client.sendall(_GET.replace(b"HTTP/1.1", b"HTTP/1.0"))
    head = _read_until(client, b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert b"connection: close\r\n" in head
    assert application.write(b"one")
    application.send(b"two", more=False)
    assert _read_to_the_end(client) == b"onetwo"


def test_the_application_is_notified_once_of_a_disconnect_and_writes_nothing_more(application: Application, client: socket.socket) -> None:
    client.sendall(_GET)
    _read_until(client, b"\r\n\r\n")
    client.close()
    eventually(lambda: application.gone == 1)
    assert not application.write(b"late")
    with pytest.raises(ConnectionResetError):
        application.send(b"late")
    assert application.gone == 1


def test_the_server_waits_for_a_slow_reader(application: Application, client: socket.socket) -> None:
    client.sendall(_GET)
    _read_until(client, b"\r\n\r\n")
    piece = b"a" * 65536
    pieces = 0
    while application.write(piece):
        pieces += 1
        assert pieces < 1000, "the buffer never filled"
    assert application.loop is not None
    message = {"type": "http.response.body", "body": b"end", "more_body": False}
    waiting = asyncio.run_coroutine_threadsafe(application.wire().send(message), application.loop)
    assert not application.write(piece)
    assert not waiting.done()
    read = _read_until(client, b"0\r\n\r\n")
    waiting.result(10)
    assert read.count(b"a") == pieces * len(piece)


def test_bytes_from_the_client_during_a_stream_close_the_connection_after_the_response(
    application: Application, client: socket.socket
) -> None:
    client.sendall(_GET)
    _read_until(client, b"\r\n\r\n")
    client.sendall(b"GET /next HTTP/1.1\r\nhost: a\r\n\r\n")
    # The event loop has read all earlier bytes when this condition is true.
    eventually(lambda: not application.wire()._keeps_alive)
    application.send(b"", more=False)
    assert _read_to_the_end(client) == b"0\r\n\r\n"


def test_a_client_that_sends_without_end_during_a_stream_is_disconnected(application: Application, client: socket.socket) -> None:
    client.sendall(_GET)
    _read_until(client, b"\r\n\r\n")
    with pytest.raises(ConnectionError):
        _say_without_end(client, b"a" * 4096)
    eventually(lambda: application.gone == 1)


def test_a_long_head_in_one_packet_gets_431_too(client: socket.socket) -> None:
    client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nx-more: " + b"a" * HEAD_BYTES + b"\r\n\r\n")
    assert _read_to_the_end(client).startswith(b"HTTP/1.1 431 ")


def test_a_head_with_too_many_lines_gets_431(client: socket.socket) -> None:
    client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n" + b"a: b\r\n" * MOST_HEADERS + b"\r\n")
    assert _read_to_the_end(client).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("target", [b"/\xff", b"http://other", b"other:443", b"/\0"])
def test_an_invalid_url_gets_400(client: socket.socket, target: bytes) -> None:
    client.sendall(b"GET " + target + b" HTTP/1.1\r\nhost: a\r\n\r\n")
    assert _read_to_the_end(client).startswith(b"HTTP/1.1 400 ")


def test_an_invalid_body_gets_400(client: socket.socket) -> None:
    client.sendall(b"POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n")
    read = _read_to_the_end(client)
    assert read.startswith(b"HTTP/1.1 400 ")
    assert read.count(b"HTTP/1.1") == 1


def test_lines_after_a_body_are_not_headers(client: socket.socket) -> None:
    client.sendall(b"POST /headers HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-forwarded-for: b\r\n\r\n")
    answer = _read_until(client, b"0\r\n\r\n")
    assert b"host;" in answer
    assert b"x-forwarded-for" not in answer


def test_endless_lines_after_a_body_are_refused(client: socket.socket) -> None:
    client.sendall(b"POST /headers HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-more: ")
    with pytest.raises(ConnectionError):
        _say_without_end(client, b"a" * 4096)


@pytest.mark.parametrize("version", [b"1.0", b"2.0"])
def test_a_response_of_unknown_length_is_chunked_only_for_http_1_1(client: socket.socket, version: bytes) -> None:
    client.sendall(b"GET /headers HTTP/" + version + b"\r\nhost: a\r\nconnection: keep-alive\r\n\r\n")
    head, _, body = _read_to_the_end(client).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert body == b"host;connection;"


@pytest.mark.parametrize("connection", [b"close", b"keep-alive"])
def test_connection_closes_when_the_client_stops_reading(
    monkeypatch: pytest.MonkeyPatch, application: Application, connection: bytes
) -> None:
    monkeypatch.setattr(http_flow, "STALLED_SECONDS", 0.3)
    with _serving(application) as address, socket.create_connection(address, timeout=10) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nhost: a\r\nconnection: " + connection + b"\r\n\r\n")
        eventually(application.connections)
        client.sendall(b"GET /next HTTP/1.1\r\nhost: a\r\n\r\n")
        eventually(lambda: not application.connections())


def test_a_client_may_stay_silent_after_reading_a_long_response(monkeypatch: pytest.MonkeyPatch, application: Application) -> None:
    monkeypatch.setattr(http_flow, "STALLED_SECONDS", 0.3)
    with _serving(application) as address, socket.create_connection(address, timeout=1) as client:
        client.sendall(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n")
        _read_until(client, b"0\r\n\r\n")
        with pytest.raises(TimeoutError):
            client.recv(1)


def test_an_empty_line_between_requests_does_not_keep_a_connection_open(application: Application) -> None:
    with _serving(application, keep_alive=1) as address, socket.create_connection(address, timeout=10) as client:
        client.sendall(b"GET /first HTTP/1.1\r\nhost: a\r\n\r\n")
        _read_until(client, b"/first")
        client.sendall(b"\r\n")
        assert _read_to_the_end(client) == b""


def test_the_server_writes_no_error_into_a_response_in_progress(application: Application, client: socket.socket) -> None:
    client.sendall(b"GET /late HTTP/1.1\r\nhost: a\r\n\r\nno request\r\n\r\n")
    read = _read_to_the_end(client)
    application.may_answer.set()
    assert read == b""


def test_an_application_that_takes_over_a_response_is_notified_of_an_earlier_disconnect(
    application: Application, client: socket.socket
) -> None:
    client.sendall(_GET.replace(b"/stream", b"/late-stream"))
    eventually(lambda: application.loop is not None)
    client.close()
    eventually(lambda: not application.connections())
    application.may_answer.set()
    eventually(lambda: application.gone == 1)
    assert not application.write(b"late")
    with pytest.raises(ConnectionResetError):
        application.send(b"late")


def test_an_incomplete_second_head_does_not_end_a_stream_or_start_a_request(
    monkeypatch: pytest.MonkeyPatch, application: Application
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.3)
    with _serving(application) as address, socket.create_connection(address, timeout=1) as client:
        client.sendall(_GET + b"GET /ne")
        assert b"connection: close\r\n" in _read_until(client, b"\r\n\r\n")
        with pytest.raises(TimeoutError):
            client.recv(1)
        application.send(b"", more=False)
        assert _read_to_the_end(client) == b"0\r\n\r\n"


def test_the_application_is_notified_of_a_disconnect_even_with_a_pipelined_request(application: Application, client: socket.socket) -> None:
    client.sendall(_GET + b"GET /next HTTP/1.1\r\nhost: a\r\n\r\n")
    _read_until(client, b"\r\n\r\n")
    client.close()
    eventually(lambda: application.gone == 1)


async def _say(scope: MutableMapping[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
    """Answer with the same chunks, either through the wire or in ASGI messages."""
    if scope["path"] == "/wire":
        wire: Wire = scope["extensions"][STREAM](_HEADERS)
        send = wire.send
        assert wire.write(b"at once", b"7\r\nat once\r\n")
    else:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": b"at once", "more_body": True})
    for piece in (b"a", b"", b"b" * 5000):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_the_wire_writes_the_same_bytes_as_asgi_messages(version: bytes) -> None:
    def answer(address: tuple[str, int], path: bytes) -> tuple[set[bytes], bytes]:
        with socket.create_connection(address, timeout=10) as client:
            client.sendall(b"GET %b HTTP/%b\r\nhost: a\r\nconnection: close\r\n\r\n" % (path, version))
            head, _, body = b"".join(iter(partial(client.recv, 65536), b"")).partition(b"\r\n\r\n")
            return {line for line in head.split(b"\r\n") if not line.startswith(b"date:")}, body

    with _serving(_say) as address:
        assert answer(address, b"/wire") == answer(address, b"/plain")


def test_an_unsupported_version_of_uvicorn_is_refused_with_instructions() -> None:
    require_known(uvicorn.__version__)
    with pytest.raises(UnknownUvicorn, match=r"uvicorn 0\.99\.1 is installed.*requirements/base\.lock"):
        require_known("0.99.1")
