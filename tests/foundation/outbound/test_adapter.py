"""Requests that `OutboundSession` sends without a session of the library `requests`.

The server gets the same bytes as from `requests`, and responses are read in the same way.
"""

from __future__ import annotations

import gzip
import time

import pytest
import requests

from foundation.outbound.session import OutboundSession
from tests.factories.scim import Wire, misbehaving_server, reply, sequence
from tests.factories.scim_runs import LOOPBACK

_CHUNKED = b"HTTP/1.1 200 Said\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
ANSWERS = {
    "a document": reply(200, {"id": "1", "name": "Zoë"}),
    "nothing": reply(204),
    "packed": reply(200, raw=gzip.compress(b"x" * 5000), headers={"Content-Encoding": "gzip"}),
    "in chunks": _CHUNKED,
    "a redirect": reply(302, headers={"Location": "/elsewhere"}),
    "a refusal": reply(409, {"detail": "taken"}, headers={"Set-Cookie": "a=b", "Retry-After": "3"}),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize(("method", "body"), [("GET", None), ("POST", b'{"a": 1}'), ("PUT", b""), ("DELETE", None)])
def test_a_request_and_its_response_are_the_same_as_with_the_library_requests(answer: Wire, method: str, body: bytes | None) -> None:
    headers = {"Authorization": "Bearer t", "Content-Type": "application/scim+json"}
    with misbehaving_server(sequence(answer)) as server:
        address = f"http://127.0.0.1:{server.port}/Users?filter=a%20eq%20%22b%22"
        fast = OutboundSession(LOOPBACK).send(method, address, headers=headers, body=body, deadline=time.monotonic() + 5)
        plain = requests.request(method, address, headers=headers, data=body, timeout=5, allow_redirects=False)
        asked = [(seen.verb, seen.target, seen.body, {name: seen.headers.get(name) for name in ("host", *map(str.lower, headers))})
                 for seen in server.received]  # fmt: skip
    assert (fast.status, dict(fast.headers), fast.body) == (plain.status_code, dict(plain.headers), plain.content)
    assert asked[0] == asked[1]
