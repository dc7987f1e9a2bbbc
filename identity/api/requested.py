"""Values that are derived from a request and that are not in its path, query or body."""

from __future__ import annotations

from rest_framework.request import Request

from identity.hosts import resolve_host


def base_of(request: Request) -> str:
    """Return the base URL of the tenant at the registered domain that the client used, without a slash at its end."""
    match = resolve_host(request.META.get("HTTP_HOST", ""))
    return match.issuer.removesuffix("/") if match else ""
