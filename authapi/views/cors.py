"""Cross-origin rules of the OAuth endpoints: any origin, no cookies, rate headers readable. Pure."""

from __future__ import annotations

from collections.abc import Iterable

_HEADERS = "Accept, Authorization, Content-Type, DPoP, Auth0-Client, X-Request-Language"
_EXPOSED = "DPoP-Nonce, Retry-After, WWW-Authenticate, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"


def answer_headers() -> dict[str, str]:
    """Return the headers of an answer to a script. Nothing here depends on cookies, so every origin may read it."""
    return {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": _EXPOSED}


def preflight_headers(methods: Iterable[str]) -> dict[str, str]:
    """Return the headers that answer an `OPTIONS` request."""
    return {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Allow-Headers": _HEADERS,
        "Access-Control-Max-Age": "600",
    }
