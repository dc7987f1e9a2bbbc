"""Responses for URLs without a view: pages for browsers, JSON for programs on a tenant's host."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import Resolver404
from django.views.defaults import page_not_found

from authapi.views.unserved import is_navigation, unserved
from config.middleware.platform_host import PLATFORM_PREFIXES
from foundation.api.paths import MANAGEMENT_PREFIX
from identity.hosts import HostMatch


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request for a URL without a view. If a view raises a 404 itself, the response is always a page.

    Django calls this function in a thread, and never closes a database connection of that thread. So the function makes no query: it uses
    the host that the edge has resolved.
    """
    host: HostMatch | None = getattr(request, "scope", {}).get("host_match")
    is_other = request.path_info.startswith((MANAGEMENT_PREFIX, *PLATFORM_PREFIXES))
    if host is None or not host.is_active or is_other or is_navigation(request.headers) or not isinstance(exception, Resolver404):
        return page_not_found(request, exception if isinstance(exception, Http404) else Http404())
    return unserved(request)
