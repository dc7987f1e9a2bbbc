"""The pages of the platform answer on its own host only: on the host of a tenant they do not exist."""

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
    """Answer 404 for the platform's pages elsewhere, and 400 where their address holds what no column can."""
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
    """Raise `Http404` or `BadRequest` for what the platform's pages do not answer."""
    if not any(request.path_info == prefix or request.path_info.startswith(f"{prefix}/") for prefix in PLATFORM_PREFIXES):
        return
    if not is_platform_host(request.META.get("HTTP_HOST", "")):
        raise Http404
    if "\x00" in request.path_info or "\x00" in unquote(request.META.get("QUERY_STRING", "")):
        # PostgreSQL has no text with a NUL character, so no address can mean one.
        raise BadRequest("A NUL character.")
