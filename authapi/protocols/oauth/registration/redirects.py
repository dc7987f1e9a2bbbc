"""The redirect URLs that a self-registered client may use.

The rules are stricter than for URLs that administrators enter, because no administrator checks these URLs. Pure.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

MOST_ADDRESSES = 20
LONGEST_ADDRESS = 2048
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
# RFC 8252, 7.1: a private scheme is a reversed domain name, so that it has one owner.
_OWN_SCHEME = re.compile(r"[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+")


def is_loopback(address: str) -> bool:
    """Tell whether a URL points to the user's device."""
    parts = urlsplit(address)
    return parts.scheme == "http" and parts.hostname in _LOOPBACK


def is_native(address: str) -> bool:
    """Tell whether only an application on the user's device can receive answers at this URL."""
    return is_loopback(address) or urlsplit(address).scheme != "https"


def address_problem(address: str, *, takes_native: bool = True) -> str:
    """Return what is wrong with a redirect URL, empty if it is valid."""
    if len(address) > LONGEST_ADDRESS or not address.isprintable() or any(character in address for character in " \\*#"):
        return "has a space, a backslash, a wildcard, a fragment or a control character, or is too long"
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return "is not an address"
    if "@" in parts.netloc:
        return "contains a user name"
    if parts.scheme == "https":
        return "" if parts.hostname else "has no host"
    if not takes_native:
        return "must begin with https://"
    if parts.scheme == "http":
        return "" if is_loopback(address) else "must begin with https://; http is only for the loopback address of a native application"
    if _OWN_SCHEME.fullmatch(parts.scheme) is None:
        return "must begin with https://, or with a scheme of the application's own such as com.example.app:/ (RFC 8252, 7.1)"
    return ""
