"""Pages that return to the page from which they were opened. The URL is in the query parameter `next`."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme, urlencode

_NEXT = "next"


def place_to_return_to(request: HttpRequest) -> str:
    """Return the URL in the query; empty if the query has no URL, or if the URL leads to another site."""
    asked = request.GET.get(_NEXT, "")
    is_own = asked.startswith("/") and url_has_allowed_host_and_scheme(asked, allowed_hosts=None)
    return asked if is_own else ""


def returning(request: HttpRequest, url: str) -> str:
    """Return `url` with the parameter `next`: the URL of this request's page, to which the page at `url` returns."""
    query = request.GET.urlencode()
    return f"{url}?{urlencode({_NEXT: f'{request.path}?{query}' if query else request.path})}"
