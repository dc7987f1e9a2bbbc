"""Limits the platform's pages to its own host: on the host of a tenant, these pages answer 404."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest
from django.utils.decorators import sync_and_async_middleware

from identity.hosts import is_platform_host

PLATFORM_PREFIXES = ("/admin",)


@sync_and_async_middleware
def platform_host(get_response: Any) -> Any:
    """Answer 404 for the platform's pages on other hosts, and 400 for URLs with a NUL character."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> Any:
            check(request)
            return await get_response(request)

        return asynchronous

    def synchronous(request: HttpRequest) -> Any:
        check(request)
        return get_response(request)

    return synchronous


def check(request: HttpRequest) -> None:
    """Raise `Http404` for a platform page on another host, and `BadRequest` for a NUL character in its URL."""
    if not any(request.path_info == prefix or request.path_info.startswith(f"{prefix}/") for prefix in PLATFORM_PREFIXES):
        return
    if not is_platform_host(request.META.get("HTTP_HOST", "")):
        raise Http404
    if "\x00" in request.path_info or "\x00" in unquote(request.META.get("QUERY_STRING", "")):
        # Text in PostgreSQL cannot contain NUL characters, so no valid URL has one.
        raise BadRequest("The address contains a NUL character.")
