"""Cross-origin rules of the OAuth endpoints: which origins may read responses (with or without cookies), and which headers scripts may send
and read. Pure."""

from __future__ import annotations

from collections.abc import Iterable

_HEADERS = "Accept, Authorization, Content-Type, DPoP, Auth0-Client, X-Request-Language"
_EXPOSED = "DPoP-Nonce, Retry-After, WWW-Authenticate, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"


def answer_headers(reader: str = "") -> dict[str, str]:
    """Return the CORS headers of an answer.

    Every origin may read the answer to a request without cookies. Only the origin `reader` may read the answer to a request with cookies.
    """
    return {**_readers(reader), "Access-Control-Expose-Headers": _EXPOSED}


def preflight_headers(methods: Iterable[str], *, reader: str = "") -> dict[str, str]:
    """Return the headers that answer an `OPTIONS` request.

    Each client has its own list of allowed origins, but a preflight names no client. So the preflight of an endpoint with cookies permits
    every origin, and the endpoint checks the origin of the request that follows the preflight.
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
