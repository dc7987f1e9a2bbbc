"""The web origins from which scripts of a client may request tokens. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from authapi.clients.callbacks import matches_wildcard


def is_origin_allowed(origin: str | None, *, allowed: Iterable[str], known: Iterable[str]) -> bool:
    """Tell whether a request of a client with this Origin header is accepted.

    `allowed` are the registered origins, which may have wildcards. Without registered origins, every origin is accepted. With registered
    origins, the origins of `known` are accepted, too: `known` are URLs of the client itself, such as its callbacks. Only browsers send the
    header, so the check restricts only browsers.
    """
    registered = tuple(allowed)
    if not registered or origin is None:
        return True
    given = web_origin_of(origin)
    if not given or given != origin.lower():
        return False
    if any(given == web_origin_of(address) for address in (*registered, *known) if "*" not in address):
        return True
    return any(matches_wildcard(given, pattern.rstrip("/")) for pattern in registered)


def web_origin_of(address: str) -> str:
    """Return scheme, host and port, written as browsers write an origin. Empty for a URL without an origin."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    is_default = port in (None, 443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{host}" if is_default else f"{parts.scheme}://{host}:{port}"
