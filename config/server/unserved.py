"""Responses for URLs without a view, and for failed views: pages for browsers, JSON for programs on a tenant's host."""

from __future__ import annotations

import sys
from http import HTTPStatus

from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import Resolver404
from django.views.defaults import page_not_found, server_error

from authapi.views.unserved import is_navigation, unserved
from config.middleware.platform_host import PLATFORM_PREFIXES
from foundation.api.paths import MANAGEMENT_PREFIX
from identity.hosts import HostMatch

_RETRY_AFTER_SECONDS = 5


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request for a URL without a view. If a view raises a 404 itself, the response is always a page.

    Django calls this function in a thread, and never closes a database connection of that thread. So the function makes no query: it uses
    the tenant that `config.server.hosts` has found for the host.
    """
    host: HostMatch | None = getattr(request, "scope", {}).get("host_match")
    is_other = request.path_info.startswith((MANAGEMENT_PREFIX, *PLATFORM_PREFIXES))
    if host is None or not host.is_active or is_other or is_navigation(request.headers) or not isinstance(exception, Resolver404):
        return page_not_found(request, exception if isinstance(exception, Http404) else Http404())
    return unserved(request)


def failed(request: HttpRequest) -> HttpResponse:
    """Answer a request whose view failed: 503 while the database is unavailable, otherwise 500. Django calls this in its `except` block."""
    if not isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return server_error(request)
    # Render the page without the request: the context of the request needs the session, which is in the database.
    page = render_to_string("503.html")
    return HttpResponse(page, status=HTTPStatus.SERVICE_UNAVAILABLE, headers={"Retry-After": str(_RETRY_AFTER_SECONDS)})
