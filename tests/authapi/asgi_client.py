"""Sends one request to an ASGI application without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from authapi.views import HOT_ENDPOINTS
from authapi.views.chain import Application
from identity.models import Tenant

FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Received:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def send(
    application: Application,
    method: str,
    *,
    host: str,
    headers: Mapping[str, str] | None = None,
    chunks: tuple[bytes, ...] = (b"",),
    address: str = "192.0.2.1",
    repeated: tuple[tuple[str, str], ...] = (),
    query: str = "",
    named: Mapping[str, str] | None = None,
) -> Received:
    """Send a request whose body arrives in `chunks`, and return the answer. `repeated` contains additional header lines.

    `named` is the part of the path that the route captures.
    """
    exchange = exchanged(
        application, method, host=host, headers=headers, chunks=chunks, address=address, repeated=repeated, query=query, named=named
    )
    return asyncio.run(exchange)


async def exchanged(
    application: Application,
    method: str,
    *,
    host: str,
    headers: Mapping[str, str] | None = None,
    chunks: tuple[bytes, ...] = (b"",),
    address: str = "192.0.2.1",
    repeated: tuple[tuple[str, str], ...] = (),
    query: str = "",
    named: Mapping[str, str] | None = None,
) -> Received:
    """Send a request as `send` does, but on the caller's event loop."""
    lines = [("host", host), *(headers or {}).items(), *repeated]
    pairs = [(name.lower().encode(), value.encode()) for name, value in lines]
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": "/",
        "query_string": query.encode(),
        "headers": pairs,
        "client": (address, 1),
    }
    if named:
        scope["url_route"] = {"kwargs": dict(named)}
    waiting = [{"type": "http.request", "body": chunk, "more_body": index < len(chunks) - 1} for index, chunk in enumerate(chunks)]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def collect(message: Any) -> None:
        sent.append(message)

    await application(scope, receive, collect)
    start, *bodies = sent
    received = {name.decode(): value.decode() for name, value in start["headers"]}
    return Received(start["status"], received, b"".join(part["body"] for part in bodies))


def get(tenant: Tenant, path: str, *, host: str | None = None) -> Received:
    return send(HOT_ENDPOINTS[path], "GET", host=host or f"{tenant.pk}.example.test")


def read_profile(
    tenant: Tenant,
    token: str | None,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    host: str | None = None,
    query: str = "",
) -> Received:
    """Request `/userinfo`, with or without a bearer token."""
    bearer = {"Authorization": f"Bearer {token}"} if token is not None else {}
    host = host or f"{tenant.pk}.example.test"
    return send(HOT_ENDPOINTS["/userinfo"], method, host=host, headers={**bearer, **(headers or {})}, chunks=(body,), query=query)


def ask_revocation(tenant: Tenant, form: Mapping[str, Any], *, as_json: bool = False, host: str | None = None) -> Received:
    """POST to the revocation endpoint of a tenant."""
    return post("/oauth/revoke", tenant, form, as_json=as_json, headers=None, host=host, address="192.0.2.1")


def ask_token(
    tenant: Tenant,
    form: Mapping[str, Any] | None = None,
    *,
    as_json: bool = False,
    headers: Mapping[str, str] | None = None,
    host: str | None = None,
    address: str = "192.0.2.1",
) -> Received:
    """POST to the token endpoint of a tenant. The body is form-encoded unless `as_json`."""
    return post("/oauth/token", tenant, form or {}, as_json=as_json, headers=headers, host=host, address=address)


def post(
    path: str,
    tenant: Tenant,
    form: Mapping[str, Any],
    *,
    as_json: bool = False,
    headers: Mapping[str, str] | None = None,
    host: str | None = None,
    address: str = "192.0.2.1",
) -> Received:
    """POST to an endpoint that `config.asgi` serves without Django. The body is form-encoded unless `as_json`."""
    body = json.dumps(form) if as_json else urlencode(form)
    kind = "application/json" if as_json else FORM
    return send(
        HOT_ENDPOINTS[path],
        "POST",
        host=host or f"{tenant.pk}.example.test",
        headers={"Content-Type": kind, **(headers or {})},
        chunks=(body.encode(),),
        address=address,
    )
