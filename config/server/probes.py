"""Requests that reach a web process directly: the probes of an orchestrator, and requests for the metrics of a single process.

Such a request has the IP address of the process as its host and needs no TLS. No proxy has forwarded it.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Mapping

from django.db import Error as DatabaseError
from django.db import connection

from config.server.hosts import Application, Receive, Scope, Send, header
from events.stream import runtime
from foundation.memory import executor
from foundation.memory.ttl_cache import Remembered

LIVE, READY = "/-/live", "/-/ready"
_FORWARDED = (b"x-forwarded-for", b"forwarded", b"x-real-ip")
# The maximum duration of the database check. The pool stops waiting for a connection earlier.
_DATABASE_SECONDS = 4.0
_ALIVE, _NO_DATABASE, _ENDING = b"The process answers.\n", b"The database does not answer.\n", b"The process ends.\n"


def is_direct(scope: Scope) -> bool:
    """Tell whether the Host header is an IP address and no proxy has forwarded the request. No tenant has an IP address as its host."""
    if any(name in _FORWARDED for name, _ in scope["headers"]):
        return False
    host = header(scope, b"host")
    literal = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
    try:
        ipaddress.ip_address(literal)
    except ValueError:
        return False
    return True


def direct_requests(answers: Mapping[str, Application], *, otherwise: Application) -> Application:
    """Answer direct GET and HEAD requests for the paths in `answers`, and pass every other request to `otherwise`."""

    # This function is not a coroutine, because each open stream would keep its coroutine in memory.
    def chosen(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        own = answers.get(scope["path"])
        if own is not None and scope["method"] in {"GET", "HEAD"} and is_direct(scope):
            return own(scope, receive, send)
        return otherwise(scope, receive, send)

    return chosen


async def live(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 200 without thread or database. If a probe gets no answer, the event loop is blocked, so the process needs a restart."""
    await _answer(scope, send, 200, _ALIVE)


async def ready(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 200 if the database answers and the process is not ending, else 503."""
    streams = runtime.running()
    if streams is not None and streams.is_draining:
        await _answer(scope, send, 503, _ENDING)
        return
    try:
        await asyncio.wait_for(executor.remembered(_database, ""), _DATABASE_SECONDS)
    except (DatabaseError, OSError, TimeoutError):
        await _answer(scope, send, 503, _NO_DATABASE)
        return
    await _answer(scope, send, 200, _ALIVE)


def _ask_database(_: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return True


# All probes within a second share the result of one query.
_database = Remembered(_ask_database, seconds=1.0, limit=1)


async def _answer(scope: Scope, send: Send, status: int, text: bytes) -> None:
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(text)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else text})
