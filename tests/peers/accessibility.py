"""Checks a page with axe, and whether the page fits, at 1440 and 360 pixels, in light and dark mode.

The page is loaded once. The width and the color scheme change without a reload, because loading a page takes longer than checking it.
"""

from __future__ import annotations

import json

from config.launcher.peers import PLACE
from tests.peers.chromium import Page

AXE = PLACE / "node_modules" / "axe-core" / "axe.min.js"
DESKTOP, PHONE = 1440, 360

# The header and the navigation are the same on every page of the admin, so they are checked on the start page only.
CONTENT = {"exclude": ["#header", "#nav-sidebar", "#toggle-nav-sidebar", "#footer"]}
# Test scripts cannot run in frames whose sandbox forbids every script.
_JUDGED = (
    "axe.run(%s, {preload: false, iframes: false, resultTypes: ['violations'], %s})"
    ".then((result) => result.violations.map(({id, nodes}) => `${id}: ${nodes[0].html}`.slice(0, 400)))"
)
# Best practices that axe does not check by default.
_ALL_RULES = "rules: {'target-size': {enabled: true}, 'heading-order': {enabled: true}}"
# Rules whose result depends on the colors, and rules whose result also depends on the width.
_RULES_OF_COLORS = "runOnly: ['color-contrast', 'link-in-text-block']"
_RULES_OF_WIDTHS = "runOnly: ['target-size', 'color-contrast', 'link-in-text-block', 'scrollable-region-focusable']"
# In this order, each step changes either the width or the color scheme.
_LOOKS = (
    (DESKTOP, "light", _ALL_RULES),
    (DESKTOP, "dark", _RULES_OF_COLORS),
    (PHONE, "dark", _RULES_OF_COLORS),
    (PHONE, "light", _RULES_OF_WIDTHS),
)
_TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Axe spends half of its time on the elements of header and navigation, even if it does not check them. Removing them keeps the layout.
_EMPTY_FRAME = "for (const part of document.querySelectorAll('#nav-sidebar, #header')) part.replaceChildren()"
_SCHEME = "matchMedia('(prefers-color-scheme: dark)').matches"


def barriers_of(page: Page, *, is_whole: bool = False) -> list[str]:
    """Return the faults of the open page, each with its width and color scheme. Afterwards, the page is wide and light.

    `is_whole` also checks the header and the navigation of the admin.
    """
    found = list(page.complaints)
    if page.evaluate("!window.axe"):
        page.evaluate(AXE.read_text() + "; true")
    if not is_whole:
        page.evaluate(_EMPTY_FRAME)
    part = "document" if is_whole else json.dumps(CONTENT)
    for width, scheme, rules in _LOOKS:
        show_whole(page, width, scheme)
        assert page.evaluate(_SCHEME) is (scheme == "dark")
        found += [f"{width} {scheme}: {fault}" for fault in page.evaluate(_JUDGED % (part, rules))]
        if (wider := page.evaluate(_TOO_WIDE)) > 0:
            found.append(f"{width} {scheme}: {wider} pixels too wide")
    page.show_as(width=DESKTOP)
    return found


def show_whole(page: Page, width: int, scheme: str) -> None:
    """Set width and color scheme, and a height without a scroll bar. With a scroll bar, the fixed bar of buttons would cover fields."""
    page.show_as(width=width, scheme=scheme)
    height = int(page.evaluate("document.documentElement.scrollHeight"))
    page.show_as(width=width, scheme=scheme, height=max(900, height))
