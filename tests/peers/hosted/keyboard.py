"""A user without a mouse, who uses Tab, Enter and the space bar. The focus must be visible and move in reading order."""

from __future__ import annotations

import json
from typing import Any

from tests.peers.hosted.walk import Walk

_MOST_STOPS = 25
# The focus: its position in the document, its style, and whether it is inside the window.
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
    """The keyboard of a visit."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._page = walk.page

    def go_to(self, selector: str) -> None:
        """Press Tab until the element has the focus. Every element in between must be visible and further down in the document."""
        wanted = f"document.activeElement.matches({json.dumps(selector)})"
        # Chromium ignores keys until it has painted a new page, and moves the focus to a field with `autofocus` at about that time.
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
        """Replace the text in the field."""
        self._page.evaluate("document.activeElement.select()")
        self._page.send("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key that leads to another page, and wait for the page."""
        self._page.evaluate("window.isOld = true")
        self._page.press(key)
        self._page.until("!window.isOld && document.readyState === 'complete' && location.href !== 'about:blank'")

    def has_landed(self) -> bool:
        """Report whether the application has received the response."""
        address = str(self._page.evaluate("location.href"))
        return address.startswith(f"{self._walk.world.origin}/callback?code=")

    def _focus(self) -> dict[str, Any]:
        found: dict[str, Any] = self._page.evaluate(_FOCUS)
        return found

    def _check(self, focus: dict[str, Any]) -> None:
        assert focus["outline"] >= 2, ("the focus cannot be seen", focus)
        assert focus["isShown"], ("the focus is outside of the window", focus)
