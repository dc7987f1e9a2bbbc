"""The content security policy of every page: local files only, no inline script or style, no frames, no foreign form targets."""

from __future__ import annotations

from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.utils.decorators import sync_and_async_middleware

CONTENT_POLICY = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
_HEADER = "Content-Security-Policy"


@sync_and_async_middleware
def content_policy(get_response: Any) -> Any:
    """Set the policy on every response that has no policy."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> Any:
            response = await get_response(request)
            response.headers.setdefault(_HEADER, CONTENT_POLICY)
            return response

        return asynchronous

    def synchronous(request: HttpRequest) -> Any:
        response = get_response(request)
        response.headers.setdefault(_HEADER, CONTENT_POLICY)
        return response

    return synchronous
