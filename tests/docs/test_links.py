"""Every relative link of the Markdown files points to an existing file and to an existing heading."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^(```+|~~~+).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (?P<text>.+?)\s*#*$", re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_all_links_resolve(page: Path) -> None:
    assert dead_links(page) == []


def test_the_check_finds_a_broken_link_and_a_missing_heading(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# There\n\n## `GET /users`\n\n## Twice\n\n## Twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n[a](there.md) [b](there.md#get-users) [c](there.md#twice-1) [d](#page) [e](https://example.com/x)\n"
        "[f](gone.md) [g](there.md#gone) [h](#gone) ![i](gone.png)\n```\n[j](gone.md)\n```\n`[k](gone.md)`\n"
    )
    assert dead_links(page) == ["gone.md", "there.md#gone", "#gone", "gone.png"]


def dead_links(page: Path) -> list[str]:
    """Return the links that lead to a missing file or heading, in the order of the page."""
    targets = (found["target"] for found in _LINK.finditer(_prose(page)))
    return [target for target in targets if not _ELSEWHERE.match(target) and not _is_there(page, target)]


def _is_there(page: Path, target: str) -> bool:
    path, _, heading = target.partition("#")
    file = (page.parent / unquote(path)).resolve() if path else page
    return file.exists() and (not heading or heading in _headings(file))


@cache
def _headings(file: Path) -> frozenset[str]:
    """Return the anchors of the headings of a page, as code hosts and the manual generate them."""
    seen: Counter[str] = Counter()
    places = []
    for found in _HEADING.finditer(_FENCE.sub("", file.read_text())):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found["text"])
        place = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        places.append(f"{place}-{seen[place]}" if seen[place] else place)
        seen[place] += 1
    return frozenset(places)


def _prose(page: Path) -> str:
    return _CODE.sub("", _FENCE.sub("", page.read_text()))
