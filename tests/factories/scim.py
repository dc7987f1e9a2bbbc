"""SCIM servers for tests: the real `scim2-server` as a process, and a faulty server for defects that the real server does not have.

Both use real sockets. The faulty server answers each request with the bytes that the test defines.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests

from tests.ports import free_port

TOKEN = "canary-bearer-7f3a9c-never-to-be-seen"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"


@dataclass(frozen=True)
class RealServer:
    """A running real server, and plain requests that read and change its resources."""

    base_url: str
    token: str = TOKEN
    name: str = "scim2-server"

    def users(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            page = {"startIndex": len(found) + 1, "count": 100}
            answer = requests.get(f"{self.base_url}/Users", params=page, headers=self._headers(), timeout=10).json()
            found += answer.get("Resources", [])
            if len(found) >= answer["totalResults"] or not answer.get("Resources"):
                return sorted(found, key=lambda user: str(user["id"]))

    def user(self, external_id: str) -> dict[str, Any] | None:
        """Return the resource with this `externalId`, or None. Fail if there are two."""
        found = [user for user in self.users() if user.get("externalId") == external_id]
        assert len(found) <= 1, found
        return found[0] if found else None

    def add(self, **attributes: Any) -> dict[str, Any]:
        answer = requests.post(f"{self.base_url}/Users", json={"schemas": [USER], **attributes}, headers=self._headers(), timeout=5)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def clear(self) -> None:
        for user in self.users():
            requests.delete(f"{self.base_url}/Users/{user['id']}", headers=self._headers(), timeout=5)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@contextmanager
def running_scim_server(token: str = TOKEN) -> Iterator[RealServer]:
    """Start `scim2-server` on a free port and stop it afterwards."""
    port = free_port()
    program = Path(sys.executable).with_name("scim2-server")
    arguments = [str(program), "--bearer-token", token, "--hostname", "127.0.0.1", "--port", str(port)]
    with listening(arguments, port):
        yield RealServer(f"http://127.0.0.1:{port}/v2", token)


@contextmanager
def listening(command: list[str], port: int, **variables: str) -> Iterator[None]:
    """Run a server until the end of the block. The block begins when the server listens on `port`."""
    environment = {**os.environ, **variables}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_listening(port, process)
        yield
    finally:
        process.terminate()
        process.wait(timeout=10)


def _wait_until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            threading.Event().wait(0.05)
    raise AssertionError("the server does not listen")


@dataclass(frozen=True)
class Received:
    """One request as received over the wire."""

    verb: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def filter(self) -> str:
        return parse_qs(urlsplit(self.target).query).get("filter", [""])[0]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Misbehaviour:
    """A malformed response: the server calls `act`, which writes arbitrary bytes to the socket, and then closes the connection."""

    act: Callable[[socket.socket], None]


Wire = bytes | Misbehaviour
Handler = Callable[[Received], Wire]

# The connection closes without a byte, as if the server crashed.
HANG_UP = Misbehaviour(lambda connection: None)


def reply(status: int, body: Any = None, *, headers: dict[str, str] | None = None, raw: bytes | None = None) -> bytes:
    """Return a well-formed HTTP response. `raw` is a body that is not JSON."""
    payload = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
    lines = {"Content-Length": str(len(payload)), "Content-Type": "application/scim+json", **(headers or {})}
    head = f"HTTP/1.1 {status} Said\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
    return head.encode() + payload


def scim_error(status: int, scim_type: str = "", detail: str = "refused", **headers: str) -> bytes:
    return reply(status, {"schemas": [ERROR], "status": str(status), "scimType": scim_type, "detail": detail}, headers=headers)


def listing(*resources: Any) -> bytes:
    return reply(200, {"schemas": [LIST], "totalResults": len(resources), "Resources": list(resources)})


def user(identifier: str, **attributes: Any) -> dict[str, Any]:
    return {"schemas": [USER], "id": identifier, **attributes}


@dataclass
class MisbehavingServer:
    """A server that answers with the test's handler and keeps the received requests in order."""

    handler: Handler
    received: list[Received] = field(default_factory=list)
    port: int = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/scim/v2"

    @property
    def lines(self) -> list[str]:
        """Return the verb, and the path below the base URL, of every request."""
        return [f"{request.verb} {request.path.removeprefix('/scim/v2')}" for request in self.received]

    def serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while (request := _read_request(stream)) is not None:
                self.received.append(request)
                answer = self.handler(request)
                if isinstance(answer, Misbehaviour):
                    answer.act(connection)
                    return
                connection.sendall(answer)


@contextmanager
def misbehaving_server(handler: Handler) -> Iterator[MisbehavingServer]:
    """Serve `handler` on a free port, with one thread per connection."""
    server = MisbehavingServer(handler)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server.port = listener.getsockname()[1]
        accepting = threading.Thread(target=_accept, args=(listener, server), daemon=True)
        accepting.start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join(timeout=5)


def sequence(*answers: Wire) -> Handler:
    """Return a handler that gives one response per request and then repeats the last response."""
    left = list(answers)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


def by_verb(**answers: Wire | Handler) -> Handler:
    """Return a handler that answers each verb with the given bytes or handler."""

    def answer(request: Received) -> Wire:
        chosen = answers[request.verb]
        return chosen(request) if callable(chosen) else chosen

    return answer


def _accept(listener: socket.socket, server: MisbehavingServer) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_quietly, args=(server, connection), daemon=True).start()


def _quietly(server: MisbehavingServer, connection: socket.socket) -> None:
    try:
        server.serve(connection)
    except OSError:
        # The client has closed the connection, which is correct after some of these responses.
        return


def _read_request(stream: Any) -> Received | None:
    line = stream.readline()
    if not line:
        return None
    verb, target, _ = line.decode().split(" ", 2)
    headers = {}
    while (header := stream.readline().decode().strip()) != "":
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    return Received(verb, target, headers, stream.read(int(headers.get("content-length", 0))))
