"""Records a span for every request except requests for streams, if `TRACING_ENDPOINT` is set."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import AbstractContextManager
from typing import Any

from django.conf import settings

from authapi.views import HOT_ENDPOINTS
from config.server.hosts import Application, Receive, Scope, Send, header, is_believed
from config.server.request_counts import STREAMS, kind_of
from foundation.tracing import spans as tracing
from foundation.tracing.trace_context import read_header

# The methods that names of spans contain. A client can send any word as a method, so all other methods are replaced by `_OTHER`.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_FIRST_SERVER_ERROR = 500


def traced(application: Application) -> Application:
    """Record the requests of `application`; return `application` itself while tracing is off."""
    if not settings.TRACING_ENDPOINT:
        return application

    # Streams get no coroutine, because each open stream would keep its coroutine in memory.
    def chosen(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        is_stream = scope["path"].startswith(STREAMS)
        return application(scope, receive, send) if is_stream else _traced(application, scope, receive, send)

    return chosen


async def _traced(application: Application, scope: Scope, receive: Receive, send: Send) -> None:
    with _span_of(scope):

        async def noting(message: Any) -> None:
            if message["type"] == "http.response.start":
                tracing.note(**{"http.response.status_code": message["status"]})
                if message["status"] >= _FIRST_SERVER_ERROR:
                    tracing.note_failure("server error")
            await send(message)

        await application(scope, receive, noting)


def _span_of(scope: Scope) -> AbstractContextManager[None]:
    """Begin the span of a request.

    Until Django has found the route, the name of the span contains only the kind of the path, because a path may contain an email address.
    For the fixed paths in `HOT_ENDPOINTS`, the name contains the path itself.

    The trace of a caller is continued only if one of `TRACING_PROXIES` sends it. For any other caller, the span gets only a link to
    the trace; otherwise the caller could add spans to the traces of others.
    """
    method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
    place = scope["path"] if scope["path"] in HOT_ENDPOINTS else kind_of(scope["path"])
    caller = read_header(header(scope, b"traceparent"))
    peer = str((scope.get("client") or ("",))[0] or "")
    is_continued = caller is not None and is_believed(peer, settings.TRACING_PROXIES)
    return tracing.request_span(
        f"{method} {place}",
        parent=caller if is_continued else None,
        link=None if is_continued else caller,
        **{"http.request.method": method},
    )
