"""Routes requests by the encoded path: ids are percent-encoded, and a slash inside an id is `%2F`.

Django routes by the decoded path, in which such a slash would split the id. Here the path is split first, and then each segment is decoded
once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote, unquote_to_bytes

from django.http import HttpRequest
from django.http.response import HttpResponseBase

MANAGEMENT_PREFIX = "/api/v2/"
GROUP_ID = "grp_[1-9A-HJ-NP-Za-km-z]{14,22}"
# Patterns of ids in paths, by the path segment before the id. An id is checked before the database is queried.
_PATTERNS = {"users": r"\|", "user-blocks": r"\|", "members": r"\|", "groups": f"^{GROUP_ID}$"}


class Segment:
    """One whole path segment, decoded."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        # Invalid UTF-8 stays visible as lone surrogates, which `Endpoint` refuses with 400.
        return unquote_to_bytes(value.encode("latin-1")).decode("utf-8", "surrogateescape")

    def to_url(self, value: str) -> str:
        return quote(value, safe="")


def id_pattern(path: str, name: str) -> str | None:
    """Return the pattern that the id in this path parameter must match, or None."""
    place = re.search(rf"([a-z-]+)/\{{{name}\}}", path)
    return _PATTERNS.get(place[1]) if place else None


def route_on_sent_path(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: give the resolver the paths of the management interface as sent, still encoded."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(MANAGEMENT_PREFIX):
            request.path_info = _sent_path(request)
        return get_response(request)

    return middleware


def _sent_path(request: HttpRequest) -> str:
    sent = getattr(request, "scope", {}).get("raw_path")
    # A server may omit the raw path (ASGI 3.0, "HTTP connection scope"); then no segment can contain a slash.
    return sent.decode("latin-1").partition("?")[0] if sent else quote(request.path, safe="/")
