"""Routing on the path as it was sent: ids arrive percent-encoded whole, and a slash inside an id is `%2F`.

Django routes on the decoded path, where that slash would split the id. Here the path is split first and each segment
decoded once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote, unquote_to_bytes

from django.http import HttpRequest
from django.http.response import HttpResponseBase

MANAGEMENT_PREFIX = "/api/v2/"
GROUP_ID = "grp_[1-9A-HJ-NP-Za-km-z]{14,22}"
# The ids in paths whose form is judged before a row is looked for, by what stands before them.
_PATTERNS = {"users": r"\|", "user-blocks": r"\|", "members": r"\|", "groups": f"^{GROUP_ID}$"}


class Segment:
    """One whole segment of the path, as the text that was meant."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        # Bytes that are no UTF-8 stay visible as lone surrogates, which `Endpoint` refuses with 400.
        return unquote_to_bytes(value.encode("latin-1")).decode("utf-8", "surrogateescape")

    def to_url(self, value: str) -> str:
        return quote(value, safe="")


def id_pattern(path: str, name: str) -> str | None:
    """Return the form of the id that this parameter of a path must have, where there is one."""
    place = re.search(rf"([a-z-]+)/\{{{name}\}}", path)
    return _PATTERNS.get(place[1]) if place else None


def route_on_sent_path(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: let the resolver see the management interface's paths as they were sent, still encoded."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(MANAGEMENT_PREFIX):
            request.path_info = _sent_path(request)
        return get_response(request)

    return middleware


def _sent_path(request: HttpRequest) -> str:
    sent = getattr(request, "scope", {}).get("raw_path")
    # A server may leave the sent path out (ASGI 3.0, "HTTP connection scope"): then no segment holds a slash.
    return sent.decode("latin-1").partition("?")[0] if sent else quote(request.path, safe="/")
