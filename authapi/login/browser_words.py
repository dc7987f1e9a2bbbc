"""The names of browser and system in a `User-Agent`, for people. Pure.

The header is what the sender says. Only words of these tables come out, so nothing that an attacker writes stands in a mail.
"""

from __future__ import annotations

# The first that is found counts: most browsers name those they descend from, too.
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
    """Return the `browser` and the `system`, empty where the header names none that is known."""
    return {"browser": _first(_BROWSERS, user_agent), "system": _first(_SYSTEMS, user_agent)}


def _first(words: tuple[tuple[str, str], ...], user_agent: str) -> str:
    return next((name for mark, name in words if mark in user_agent), "")
