"""Readable names of the browser and the system in a `User-Agent`, for recognition only: the sender controls the header. Pure."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

# Order matters: the header of most browsers also contains the names of older browsers.
_BROWSERS = (
    (r"\bEdg(?:e|A|iOS)?/", "Edge"),
    (r"\b(?:OPR|Opera)/", "Opera"),
    (r"\bSamsungBrowser/", "Samsung Internet"),
    (r"\b(?:Firefox|FxiOS)/", "Firefox"),
    (r"\b(?:Chrome|CriOS|HeadlessChrome)/", "Chrome"),
    (r"\bVersion/[\d.]+.*\bSafari/", "Safari"),
)
_SYSTEMS = (
    (r"\biPhone\b", "iPhone"),
    (r"\biPad\b", "iPad"),
    (r"\bAndroid\b", "Android"),
    (r"\bCrOS\b", "ChromeOS"),
    (r"\bWindows\b", "Windows"),
    (r"\bMac ?OS ?X\b|\bMacintosh\b", "macOS"),
    (r"\bLinux\b", "Linux"),
)


def browser_in_words(user_agent: str) -> str:
    """Return a text such as "Firefox on Windows"; empty if the header contains no known name."""
    browser, system = _first(_BROWSERS, user_agent), _first(_SYSTEMS, user_agent)
    if browser and system:
        return _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return browser or system


def _first(table: tuple[tuple[str, str], ...], text: str) -> str:
    return next((name for pattern, name in table if re.search(pattern, text)), "")
