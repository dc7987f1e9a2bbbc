"""Checks built pages: every link leads to a page and an anchor on it, and nothing is loaded from another host."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Tags and attributes that a browser loads automatically. A link that a reader follows may lead anywhere.
_LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("video", "src")}


@dataclass
class Page(HTMLParser):
    """The anchors of one page, and its references: the URL of each, and whether it is loaded automatically."""

    places: set[str] = field(default_factory=set)
    references: set[tuple[str, bool]] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            elif (name in {"href", "src"}) and value:
                self.references.add((value, (tag, name) in _LOADED))


def problems(site: Path) -> list[str]:
    """Return a message for every broken link and for everything that is loaded from another host."""
    pages = {file: _read(file) for file in sorted(site.rglob("*.html"))}
    found = []
    for file, page in pages.items():
        for address, is_loaded in sorted(page.references):
            if problem := _problem(file, address, pages, is_loaded=is_loaded):
                found.append(f"{file.relative_to(site)}: {problem}")
    return found


def _read(file: Path) -> Page:
    page = Page()
    page.feed(file.read_text())
    page.close()
    return page


def _problem(file: Path, address: str, pages: dict[Path, Page], *, is_loaded: bool) -> str:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return f"loads {address}" if is_loaded and parts.scheme != "data" else ""
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return f"{address} leads nowhere"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
        return f"{address} leads to no anchor on its page"
    return ""
