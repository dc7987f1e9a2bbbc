"""A relay that forwards requests to a real SCIM server. A test can make the relay fail before or after the server answers."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from urllib.parse import urlsplit

from tests.factories.scim import RealServer, Received, Wire, reply

Mangler = Callable[[bytes], Wire]


class Relay:
    """The handler of the relay.

    `instead` and `after` contain entries for the next requests of each verb; each entry is used once, in order.

    An entry of `instead` is the response of the relay, and the real server gets no request. An entry of `after` is a function: it gets the
    response of the real server, and returns the response for the client. Without an entry, the client gets the response of the real server.
    """

    def __init__(self, server: RealServer) -> None:
        self.server = server
        self.instead: dict[str, list[Wire]] = {}
        self.after: dict[str, list[Mangler]] = {}
        self.refuses: Callable[[Received], Wire | None] = lambda request: None

    def __call__(self, request: Received) -> Wire:
        refusal = self.refuses(request)
        if refusal is not None:
            return refusal
        if self.instead.get(request.verb):
            return self.instead[request.verb].pop(0)
        answer = self._passed_on(request)
        return self.after[request.verb].pop(0)(answer) if self.after.get(request.verb) else answer

    def _passed_on(self, request: Received) -> bytes:
        base = urlsplit(self.server.base_url)
        connection = http.client.HTTPConnection(base.hostname or "", base.port, timeout=10)
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "connection", "content-length")}
        try:
            target = base.path + request.target.removeprefix("/scim/v2")
            connection.request(request.verb, target, request.body or None, headers)
            answer = connection.getresponse()
            body = answer.read()
            return reply(answer.status, raw=body, headers={"Content-Type": answer.getheader("Content-Type") or "text/plain"})
        finally:
            connection.close()


def body_of(answer: bytes) -> bytes:
    """Return the body of a response that `reply` created."""
    return answer.partition(b"\r\n\r\n")[2]
