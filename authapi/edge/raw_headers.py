"""Header lines as they arrived, and as one value of each name. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def joined(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by name, repeated lines as one list (RFC 9110, 5.3): what may come once only is then unreadable."""
    headers: dict[str, str] = {}
    for key, value in pairs:
        name, text = key.decode("latin-1").lower(), value.decode("latin-1")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    return headers
