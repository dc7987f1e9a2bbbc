"""Checks a page with axe, at a width of 1440 and 360 pixels, in light and dark mode, and checks that no content is wider than the page.

The page is loaded once. The width and the color scheme change without a reload, because loading a page takes longer than checking it.
"""

from __future__ import annotations

import json

from config.launcher.peers import PLACE
from tests.peers.chromium import Page

AXE = PLACE / "node_modules" / "axe-core" / "axe.min.js"
DESKTOP, PHONE = 1440, 360

# Header, navigation and footer are the same on every page of the admin, so they are checked only on the start page.
CONTENT = {"exclude": ["#header", "#nav-sidebar", "#toggle-nav-sidebar", "#footer"]}
# `iframes` is false: axe cannot run in frames whose sandbox forbids scripts.
_JUDGED = (
    "axe.run(%s, {preload: false, iframes: false, resultTypes: ['violations'], %s})"
    ".then((result) => result.violations.map(({id, nodes}) => `${id}: ${nodes[0].html}`.slice(0, 400)))"
)
# Rules that axe does not apply by default, in addition to the default rules.
_ALL_RULES = "rules: {'target-size': {enabled: true}, 'heading-order': {enabled: true}}"
# Rules whose result depends on the colors, and rules whose result depends on the width.
_RULES_OF_COLORS = "runOnly: ['color-contrast', 'link-in-text-block']"
_RULES_OF_WIDTHS = "runOnly: ['target-size', 'color-contrast', 'link-in-text-block', 'scrollable-region-focusable']"
# Each step changes either the width or the color scheme of the step before.
_LOOKS = (
    (DESKTOP, "light", _ALL_RULES),
    (DESKTOP, "dark", _RULES_OF_COLORS),
    (PHONE, "dark", _RULES_OF_COLORS),
    (PHONE, "light", _RULES_OF_WIDTHS),
)
_TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Axe spends half of its time on the elements in header and navigation, even if it does not check these elements. Removing the elements
# does not change the layout of the page.
_EMPTY_FRAME = "for (const part of document.querySelectorAll('#nav-sidebar, #header')) part.replaceChildren()"
_SCHEME = "matchMedia('(prefers-color-scheme: dark)').matches"


def barriers_of(page: Page, *, is_whole: bool = False) -> list[str]:
    """Return the faults of the open page, each with the width and color scheme. Afterwards, the page is shown wide and light again.

    If `is_whole` is true, the header, navigation and footer of the admin are checked, too.
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
    """Set the width and the color scheme of the window, and make it as high as the page.

    In a lower window, the bar of buttons, which does not scroll, would cover fields.
    """
    page.show_as(width=width, scheme=scheme)
    height = int(page.evaluate("document.documentElement.scrollHeight"))
    page.show_as(width=width, scheme=scheme, height=max(900, height))
