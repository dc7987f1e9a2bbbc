"""Compares requested URLs with registered URLs. The URLs must be equal, apart from a wildcard label or the port of a loopback URL. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_WILDCARD = re.compile(rf"https://\*\.((?:{_LABEL}\.)*{_LABEL})(?::[0-9]{{1,5}})?(?:[/?][^*\s\\]*)?", re.IGNORECASE)
# A loopback URL must have an IP address as its host (RFC 8252, 7.3 and 8.3), because the name `localhost` may resolve to another host.
_LOOPBACK = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]))(?::([0-9]{1,5}))?((?:[/?][^\\\s]*)?)")
_MOST_PORT = 65_535
# The domains below a public name, such as `co.uk` or `github.io`, have different owners. `_OPEN_SECOND_LEVELS` lists the labels that
# are such a name together with a country code, such as `co` in `co.uk`. `_OPEN_HOSTS` lists the hosts that give each customer a subdomain.
_OPEN_SECOND_LEVELS = frozenset(
    {"ac", "co", "com", "edu", "gob", "gov", "go", "id", "ltd", "me", "mil", "ne", "net", "nhs", "nom", "or", "org", "plc", "sch"}
)
_OPEN_HOSTS = frozenset(
    {
        "amazonaws.com", "appspot.com", "azurewebsites.net", "blogspot.com", "cloudapp.net", "cloudfront.net", "firebaseapp.com", "fly.dev",
        "github.io", "gitlab.io", "glitch.me", "herokuapp.com", "netlify.app", "ngrok-free.app", "ngrok.io", "onrender.com", "pages.dev",
        "repl.co", "run.app", "surge.sh", "trycloudflare.com", "vercel.app", "web.app", "workers.dev",
    }
)  # fmt: skip


def wildcard_problem(address: str) -> str | None:
    """Return the reason why a URL with a wildcard must not be registered. None for a valid URL, and for a URL without a wildcard.

    A wildcard replaces the first label in the host of an https URL. The rest of the host must not be a public name, whose subdomains
    have different owners.
    """
    if "*" not in address:
        return None
    match = _WILDCARD.fullmatch(address)
    if match is None:
        return "A wildcard must be the first label of the host of an https address"
    labels = match.group(1).lower().split(".")
    is_public = len(labels) < 2 or (len(labels) == 2 and len(labels[1]) == 2 and labels[0] in _OPEN_SECOND_LEVELS)
    if is_public or ".".join(labels) in _OPEN_HOSTS or labels[-1].isdigit():
        return "A wildcard must be followed by a domain of your own"
    return None


def is_registered(address: str, registered: Iterable[str], *, takes_wildcards: bool, is_native: bool) -> bool:
    """Tell whether a response may be sent to `address`. A wildcard in `address` is refused (RFC 9700, 2.1)."""
    if "*" in address:
        return False
    return any(
        address == pattern
        or (takes_wildcards and matches_wildcard(address, pattern))
        or (is_native and _is_same_loopback(address, pattern))
        for pattern in registered
    )


def matches_wildcard(address: str, pattern: str) -> bool:
    """Tell whether a URL is equal to `pattern` except for the wildcard, which stands for exactly one label."""
    if "*" not in pattern or wildcard_problem(pattern) is not None:
        return False
    rest = pattern.partition("*")[2]
    return re.fullmatch(f"https://{_LABEL}{re.escape(rest)}", address) is not None


def _is_same_loopback(address: str, pattern: str) -> bool:
    given, wanted = _LOOPBACK.fullmatch(address), _LOOPBACK.fullmatch(pattern)
    if given is None or wanted is None or not 0 < int(given.group(2) or 80) <= _MOST_PORT:
        return False
    return given.group(1) == wanted.group(1) and given.group(3) == wanted.group(3)
