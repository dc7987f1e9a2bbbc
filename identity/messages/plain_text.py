"""Converts an HTML mail to plain text, for programs that show no HTML. Pure."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_SILENT = frozenset({"style", "script", "head", "title", "template"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_BLOCKS = _HEADINGS | frozenset(
    {"address", "article", "blockquote", "div", "dl", "dt", "dd", "figure", "footer", "form", "header", "hr", "li", "main", "ol", "p"}
)
_BLOCKS |= {"pre", "section", "table", "tr", "ul"}
_SPACES = re.compile(r"[ \t\r\f\v\u00a0]+")
_EMPTY_LINES = re.compile(r"\n{3,}")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._silent: list[str] = []
        self._address = ""
        self._linked_from = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent.append(tag)
        elif tag == "br":
            self.pieces.append("\n")
        elif tag in _BLOCKS:
            self.pieces.append("\n\n" if tag != "li" else "\n- ")
        elif tag == "a":
            self._address = dict(attrs).get("href") or ""
            self._linked_from = len(self.pieces)
        elif tag == "img":
            self.pieces.append(dict(attrs).get("alt") or "")

    def handle_endtag(self, tag: str) -> None:
        if self._silent and tag == self._silent[-1]:
            self._silent.pop()
        elif tag == "a" and self._address:
            text = "".join(self.pieces[self._linked_from :]).strip()
            if self._address != text:
                self.pieces.append(f": {self._address}" if text else self._address)
            self._address = ""
        elif tag in _BLOCKS and tag != "li":
            self.pieces.append("\n\n")
        elif tag in ("td", "th"):
            self.pieces.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.pieces.append(data.replace("\n", " "))


def text_of_html(html: str) -> str:
    """Return the visible text of the HTML, each link followed by its address."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    lines = (_SPACES.sub(" ", line).strip() for line in "".join(reader.pieces).split("\n"))
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip() + "\n"
