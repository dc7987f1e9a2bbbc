"""Cross-origin rules of the OAuth endpoints: any origin without cookies, one origin with them, rate headers readable. Pure."""

from __future__ import annotations

from collections.abc import Iterable

_HEADERS = "Accept, Authorization, Content-Type, DPoP, Auth0-Client, X-Request-Language"
_EXPOSED = "DPoP-Nonce, Retry-After, WWW-Authenticate, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"


def answer_headers(reader: str = "") -> dict[str, str]:
    """Return the headers of an answer to a script. What depends on no cookie, every origin may read; else `reader` alone."""
    return {**_readers(reader), "Access-Control-Expose-Headers": _EXPOSED}


def preflight_headers(methods: Iterable[str], *, reader: str = "") -> dict[str, str]:
    """Return the headers that answer an `OPTIONS` request.

    A preflight names no client: an endpoint that takes cookies lets every page ask, and judges the origin of the request itself.
    """
    return {
        **_readers(reader),
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Allow-Headers": _HEADERS,
        "Access-Control-Max-Age": "600",
    }


def _readers(reader: str) -> dict[str, str]:
    if not reader:
        return {"Access-Control-Allow-Origin": "*"}
    return {"Access-Control-Allow-Origin": reader, "Access-Control-Allow-Credentials": "true", "Vary": "Origin"}
