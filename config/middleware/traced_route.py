"""Names the span of a request after its route. Installed only if `TRACING_ENDPOINT` is set."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from foundation.tracing import spans as tracing


def traced_route(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: name the span by the pattern of the route, not by the path. A path may contain an id or an email address."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if request.resolver_match is not None:
            route = f"/{request.resolver_match.route}"
            tracing.rename(f"{request.method} {route}")
            tracing.note(**{"http.route": route})
        return response

    return middleware
