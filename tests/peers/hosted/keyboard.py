"""A user without a mouse, who uses Tab, Enter and the space bar.

The focused element must be visible, and Tab must move the focus in the order of the elements in the HTML.
"""

from __future__ import annotations

import json
from typing import Any

from tests.peers.hosted.walk import Walk

_MOST_STOPS = 25
# The focused element: its position in the HTML, the width of its outline, and whether it is inside the window.
_FOCUS = """(() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  return {
    selectors: [...document.querySelectorAll('body *')].indexOf(one),
    outline: style.outlineStyle === 'none' ? 0 : parseFloat(style.outlineWidth),
    isShown: box.width > 0 && box.top >= 0 && box.bottom <= innerHeight,
    html: one.outerHTML.slice(0, 120),
  };
})()"""


class Keyboard:
    """The keyboard with which a user makes a visit."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._page = walk.page

    def go_to(self, selector: str) -> None:
        """Press Tab until the element has the focus. The focused elements must be visible and follow the order of the HTML."""
        wanted = f"document.activeElement.matches({json.dumps(selector)})"
        # Wait for the first paint. Before it, Chromium ignores keys, and the focus may still move to a field with `autofocus`.
        self._page.until("performance.getEntriesByType('paint').length > 0")
        if self._page.evaluate(wanted):
            self._check(self._focus())
            return
        before = -1
        for _ in range(_MOST_STOPS):
            self._page.press("Tab")
            focus = self._focus()
            self._check(focus)
            assert focus["selectors"] > before, ("the focus moves backward", focus)
            if self._page.evaluate(wanted):
                return
            before = focus["selectors"]
        raise AssertionError(f"Tab never reaches {selector}")

    def write(self, text: str) -> None:
        """Replace the text in the focused field."""
        self._page.evaluate("document.activeElement.select()")
        self._page.send("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key that loads another page, and wait for the page."""
        self._page.evaluate("window.isOld = true")
        self._page.press(key)
        self._page.until("!window.isOld && document.readyState === 'complete' && location.href !== 'about:blank'")

    def has_landed(self) -> bool:
        """Report whether the browser has been redirected to the application with a code."""
        address = str(self._page.evaluate("location.href"))
        return address.startswith(f"{self._walk.world.origin}/callback?code=")

    def _focus(self) -> dict[str, Any]:
        found: dict[str, Any] = self._page.evaluate(_FOCUS)
        return found

    def _check(self, focus: dict[str, Any]) -> None:
        assert focus["outline"] >= 2, ("the focus cannot be seen", focus)
        assert focus["isShown"], ("the focus is outside of the window", focus)
