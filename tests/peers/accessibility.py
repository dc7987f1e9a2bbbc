"""What axe finds on a page and whether the page fits, at 1440 and 360 pixels, in light and in dark.

The page is loaded once. The window and the color scheme change in place, because loading a page takes longer than judging it.
"""

from __future__ import annotations

import json

from config.launcher.peers import PLACE
from tests.peers.chromium import Page

AXE = PLACE / "node_modules" / "axe-core" / "axe.min.js"
DESKTOP, PHONE = 1440, 360

# The frame is the same on every page of the admin, so only the start page checks it.
CONTENT = {"exclude": ["#header", "#nav-sidebar", "#toggle-nav-sidebar", "#footer"]}
# Scripts of tests cannot run in frames whose sandbox forbids every script.
_JUDGED = (
    "axe.run(%s, {preload: false, iframes: false, resultTypes: ['violations'], %s})"
    ".then((result) => result.violations.map(({id, nodes}) => `${id}: ${nodes[0].html}`.slice(0, 400)))"
)
# Best practices that axe leaves off.
_ALL_RULES = "rules: {'target-size': {enabled: true}, 'heading-order': {enabled: true}}"
# Rules whose result depends on the colors, and those whose result depends on the width, too.
_RULES_OF_COLORS = "runOnly: ['color-contrast', 'link-in-text-block']"
_RULES_OF_WIDTHS = "runOnly: ['target-size', 'color-contrast', 'link-in-text-block', 'scrollable-region-focusable']"
# In this order each step changes the width or the scheme, not both.
_LOOKS = (
    (DESKTOP, "light", _ALL_RULES),
    (DESKTOP, "dark", _RULES_OF_COLORS),
    (PHONE, "dark", _RULES_OF_COLORS),
    (PHONE, "light", _RULES_OF_WIDTHS),
)
_TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Half of the time of axe is spent on the elements of the frame, even when it does not judge them. The frame keeps its place without them.
_EMPTY_FRAME = "for (const part of document.querySelectorAll('#nav-sidebar, #header')) part.replaceChildren()"
_SCHEME = "matchMedia('(prefers-color-scheme: dark)').matches"


def barriers_of(page: Page, *, is_whole: bool = False) -> list[str]:
    """Return the faults of the open page, each with its width and scheme; leave the page wide and light.

    `is_whole` judges the frame of the admin, too.
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
    """Set width and scheme, and a height without a scroll bar: otherwise the sticky bar of buttons covers fields."""
    page.show_as(width=width, scheme=scheme)
    height = int(page.evaluate("document.documentElement.scrollHeight"))
    page.show_as(width=width, scheme=scheme, height=max(900, height))
