"""Counts requests by kind and status, their durations, and lines of the sign-in log. Streams have metrics of their own."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import lru_cache
from time import perf_counter
from typing import Any

from django.db.models.signals import post_save
from prometheus_client import Counter, Histogram

from authapi.logs.sign_in_types import IN_WORDS
from authapi.models import SignIn
from config.server.hosts import Application, Receive, Scope, Send
from events.metrics import REGISTRY

_REQUESTS = Counter("http_requests", "Answers to requests other than streams, by kind and status.", ["kind", "status"], registry=REGISTRY)
_SECONDS = Histogram(
    "http_request_seconds",
    "Durations of requests other than streams, by kind.",
    ["kind"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=REGISTRY,
)
_SIGN_INS = Counter(
    "sign_in_log_lines", "Lines of the sign-in log by type: `s` is a login, `fp` a wrong password.", ["kind"], registry=REGISTRY
)

_TOKEN = "/oauth/token"  # noqa: S105  (an address)
STREAMS = ("/api/v2/events", "/admin/events/live/")
# The kind of a request, by the first part of its path. All other requests have the kind "other", so that no client can add a series to the
# metrics.
_KINDS = {
    "admin": "admin",
    "api": "management",
    "authorize": "pages",
    "u": "pages",
    "login": "pages",
    "oauth": "oauth",
    "userinfo": "userinfo",
    ".well-known": "discovery",
    "dbconnections": "accounts",
    "passwordless": "accounts",
    "mfa": "accounts",
    "samlp": "saml",
    "wsfed": "wsfed",
}
# The status that is counted if the application sends no response: the server then answers 500.
_NO_ANSWER = 500


def kind_of(path: str) -> str:
    """Return the kind of a path. The number of kinds is fixed."""
    return "token" if path == _TOKEN else _KINDS.get(path[1:].partition("/")[0], "other")


def counted(application: Application) -> Application:
    """Count every request except requests for streams."""

    # Streams bypass the coroutine that counts requests, because each open stream would keep such a coroutine in memory.
    def chosen(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        is_stream = scope["path"].startswith(STREAMS)
        return application(scope, receive, send) if is_stream else _counted(application, scope, receive, send)

    return chosen


async def _counted(application: Application, scope: Scope, receive: Receive, send: Send) -> None:
    began, status = perf_counter(), _NO_ANSWER

    async def noting(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        await send(message)

    try:
        await application(scope, receive, noting)
    finally:
        requests, seconds = _series(kind_of(scope["path"]), status)
        requests.inc()
        seconds.observe(perf_counter() - began)


# The metrics are cached for each kind and status, because finding a metric by its labels costs more than counting.
@lru_cache(maxsize=1024)
def _series(kind: str, status: int) -> tuple[Counter, Histogram]:
    return _REQUESTS.labels(kind, str(status)), _SECONDS.labels(kind)


def count_sign_ins() -> None:
    """Count every line of the sign-in log that this process writes."""
    post_save.connect(_count_sign_in, sender=SignIn, dispatch_uid="config.count_sign_ins")


def _count_sign_in(instance: SignIn, **_: Any) -> None:
    _SIGN_INS.labels(instance.type if instance.type in IN_WORDS else "other").inc()
