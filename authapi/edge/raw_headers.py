"""Joins raw header lines into one value per name. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def joined(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by name.

    Repeated lines become one comma-separated list (RFC 9110, 5.3). So if a header that must have one value is repeated, its joined value is
    invalid.
    """
    headers: dict[str, str] = {}
    for key, value in pairs:
        name, text = key.decode("latin-1").lower(), value.decode("latin-1")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    return headers
