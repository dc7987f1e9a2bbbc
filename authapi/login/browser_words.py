"""Finds readable names of the browser and the operating system in a `User-Agent` header. Pure.

The sender controls the header. Only names from these tables are returned, so text of an attacker does not reach a mail.
"""

from __future__ import annotations

# The order is important: the header of most browsers also contains the names of older browsers.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Vivaldi/", "Vivaldi"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chromium/", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iOS"),
    ("iPad", "iPadOS"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def browser_in(user_agent: str) -> dict[str, str]:
    """Return the `browser` and the `system`; each is empty if the header contains no known name."""
    return {"browser": _first(_BROWSERS, user_agent), "system": _first(_SYSTEMS, user_agent)}


def _first(words: tuple[tuple[str, str], ...], user_agent: str) -> str:
    return next((name for mark, name in words if mark in user_agent), "")
