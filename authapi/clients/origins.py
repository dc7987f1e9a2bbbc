"""From which web pages a client's scripts may ask for tokens. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from authapi.clients.callbacks import matches_wildcard
from authapi.protocols.oauth.parameters import origin_of


def is_origin_allowed(origin: str | None, *, allowed: Iterable[str], known: Iterable[str]) -> bool:
    """Tell whether a request with this Origin header is taken from a client.

    `allowed` are the registered origins, which may have wildcards; without any, every origin is. `known` are addresses of the
    client itself, such as its callbacks. Only browsers send the header, and only they are held back by it.
    """
    registered = tuple(allowed)
    if not registered or origin is None:
        return True
    given = origin_of(origin)
    if not given or given != origin.lower():
        return False
    if any(given == origin_of(address) for address in (*registered, *known) if "*" not in address):
        return True
    return any(matches_wildcard(given, pattern.rstrip("/")) for pattern in registered)
