"""A client of the management interface. It calls the ASGI application directly, with tokens from the token endpoint."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlencode

import orjson
from asgiref.sync import async_to_sync

from authapi.models import Client
from authapi.services.clients import create_client
from config.asgi import application
from events.stream.runtime import stop_runtime
from identity.models import Tenant


@dataclass(frozen=True)
class Answer:
    """A response: its status, its headers with names in lower case, and its body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


class Management:
    """A client of `/api/v2` on the host of one tenant. Callers pass paths with percent-encoding, as a client sends them."""

    def __init__(self, tenant: Tenant, *, scope: str | None = None) -> None:
        self.host = f"{tenant.pk}.example.test"
        self.client, secret = create_client(tenant_id=tenant.pk, name="Tests", is_global=True)
        self.token = token_of(self.host, self.client, secret, scope=scope)

    def get(self, path: str, query: Iterable[tuple[str, Any]] | dict[str, Any] = ()) -> Answer:
        return self.call("GET", path, query=query)

    def post(self, path: str, body: Any = None) -> Answer:
        return self.call("POST", path, body=body)

    def patch(self, path: str, body: Any = None) -> Answer:
        return self.call("PATCH", path, body=body)

    def put(self, path: str, body: Any = None) -> Answer:
        return self.call("PUT", path, body=body)

    def delete(self, path: str, body: Any = None) -> Answer:
        return self.call("DELETE", path, body=body)

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Iterable[tuple[str, Any]] | dict[str, Any] = (),
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a request, and return the response. A body that is not bytes is sent as JSON."""
        content = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        sent = {"host": self.host, "authorization": f"Bearer {self.token}", "content-length": str(len(content))}
        if content:
            sent["content-type"] = "application/json"
        target = f"/api/v2/{path}" if not path.startswith("/") else path
        pairs = list(query.items() if isinstance(query, dict) else query)
        return request(method, target, urlencode(pairs), sent | (headers or {}), content)


def token_of(host: str, client: Client, secret: str, *, scope: str | None = None) -> str:
    """Request a token for the management interface from the token endpoint, with the scopes in `scope` or with every scope."""
    form = {"grant_type": "client_credentials", "client_id": client.client_id, "client_secret": secret}
    form |= {"audience": f"http://{host}/api/v2/"} | ({"scope": scope} if scope else {})
    headers = {"host": host, "content-type": "application/json"}
    answer = request("POST", "/oauth/token", "", headers, orjson.dumps(form))
    assert answer.status == 200, answer.body
    return str(answer.json["access_token"])


def request(method: str, target: str, query: str, headers: dict[str, str], body: bytes) -> Answer:
    """Call the application with one request, as a server does, and return the response. `target` is the encoded path."""
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(target),
        "raw_path": target.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1234),
        "server": ("127.0.0.1", 80),
    }
    messages: list[MutableMapping[str, Any]] = []

    async def run() -> None:
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> MutableMapping[str, Any]:
            if not waiting:
                # The client does not disconnect before it has received its response.
                await asyncio.Event().wait()
            return waiting.pop()

        async def send(message: MutableMapping[str, Any]) -> None:
            messages.append(message)

        try:
            await application(scope, receive, send)
        finally:
            # Stop the tasks that a request for an event stream starts. A server would stop these tasks at its end.
            await stop_runtime()

    # Run each request in a new context: a request sets a variable in its context, and later requests must not find the variable.
    contextvars.copy_context().run(async_to_sync(run))
    start = messages[0]
    received = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], received, b"".join(message.get("body", b"") for message in messages[1:]))


def segment(value: str) -> str:
    """Return an id with percent-encoding for use in a path. Slashes are encoded, too, as client libraries do."""
    return quote(value, safe="")
