"""The URLs to which a browser may be sent after a logout. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

from authapi.clients.callbacks import wildcard_problem
from authapi.clients.origins import web_origin_of

_WILDCARD = "*."
# The host of a registered URL is copied into a content security policy. So characters that end a directive are refused.
_HOST = re.compile(r"[A-Za-z0-9.:\[\]_-]+")


def is_allowed(address: str, registered: Iterable[str]) -> bool:
    """Tell whether a URL is registered. Query and fragment are not compared.

    `https://*.example.com/...` matches exactly one label below the domain. It does not match the domain itself or deeper labels.
    """
    requested = _split(address)
    return requested is not None and any(_matches(requested, pattern) for pattern in registered)


def _split(address: str) -> SplitResult | None:
    # Refuse backslashes and control characters. Browsers read a backslash as a slash and drop control characters, so they could load
    # another URL than the one that was compared.
    if not address.isprintable() or "\\" in address or " " in address:
        return None
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme and "@" not in parts.netloc else None


def _matches(requested: SplitResult, pattern: str) -> bool:
    registered = _split(pattern)
    if (
        registered is None
        or wildcard_problem(pattern) is not None
        or (requested.scheme, requested.path or "/") != (registered.scheme, registered.path or "/")
    ):
        return False
    wanted, given = registered.netloc.lower(), requested.netloc.lower()
    if not wanted.startswith(_WILDCARD):
        return given == wanted
    label, separator, rest = given.partition(".")
    return bool(label) and separator == "." and rest == wanted.removeprefix(_WILDCARD) and "*" not in label


def front_channel_problem(address: str, callbacks: Iterable[str]) -> str | None:
    """Return why a URL cannot be loaded in a frame at a logout (OpenID Connect Front-Channel Logout 1.0, 2). None for a valid URL."""
    parts = _split(address)
    if parts is None or parts.scheme not in ("https", "http") or "#" in address or not _HOST.fullmatch(parts.netloc):
        return "Expected a web address without a fragment."
    if web_origin_of(address) not in {web_origin_of(callback) for callback in callbacks if "*" not in callback}:
        return "Scheme, host and port must be the same as in a callback."
    return None
