"""On real sockets, an ordinary response is sent in one write, with the same bytes as in two writes."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest

from authapi.edge.whole_messages import ANSWER, BODY
from tests.config.server.test_http_protocol import _serving

_HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"4"), (b"x-ratelimit-limit", b"200")]


async def _application(scope: MutableMapping[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
    """Answer with four bytes, in one write if the path requests it. The answer to `/odd` has a header that contains a line break."""
    headers = [*_HEADERS, *([(b"x-odd", b"a\r\nset-cookie: b")] if scope["path"] == "/odd" else [])]
    whole = scope["extensions"][BODY]() if scope["path"] == "/body" else None
    body = whole[:4] if whole is not None else b"true"
    if scope["path"] != "/two" and scope["extensions"][ANSWER](200, headers, body):
        return
    await send({"type": "http.response.start", "status": 200, "headers": [*headers, (b"x-written", b"in two")]})
    await send({"type": "http.response.body", "body": body})


def _asked(address: tuple[str, int], *requests: bytes, count: int = 1) -> bytes:
    with socket.create_connection(address) as connection:
        connection.settimeout(10)
        for request in requests:
            connection.sendall(request)
        received = b""
        while received.count(b"true") + received.count(b"bodi") < count:
            more = connection.recv(65536)
            if not more:
                break
            received += more
        return received


def _get(path: str, version: str = "1.1", further: str = "") -> bytes:
    return f"GET {path} HTTP/{version}\r\nhost: a\r\n{further}\r\n".encode()


def test_a_response_in_one_write_equals_a_response_in_two_writes() -> None:
    with _serving(_application) as address:
        one, two = _asked(address, _get("/one")), _asked(address, _get("/two"))
    date = re.compile(rb"date: [^\r]+")
    assert date.sub(b"", one) == date.sub(b"", two).replace(b"x-written: in two\r\n", b"")
    assert one.startswith(b"HTTP/1.1 200 OK\r\n")
    assert one.endswith(b"\r\n\r\ntrue")


def test_a_connection_serves_several_responses_in_one_write_each() -> None:
    with _serving(_application) as address:
        received = _asked(address, _get("/one") * 3, count=3)
    assert received.count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.parametrize("request_of", [_get("/one", version="1.0"), _get("/one", further="connection: close\r\n")])
def test_a_response_that_ends_its_connection_is_written_by_uvicorn(request_of: bytes) -> None:
    with _serving(_application) as address:
        assert b"x-written: in two" in _asked(address, request_of)


def test_a_header_with_a_line_break_is_never_written() -> None:
    with _serving(_application) as address:
        received = _asked(address, _get("/odd"))
    assert b"set-cookie" not in received


def test_a_buffered_body_is_read_immediately_and_a_missing_body_is_awaited() -> None:
    head = b"POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 6\r\n\r\n"
    with _serving(_application) as address:
        assert _asked(address, head + b"bodies").endswith(b"bodi")
        assert _asked(address, head + b"bod").endswith(b"true")
