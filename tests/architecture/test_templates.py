"""Django treats `{#` as a comment only if the comment ends on the same line. Otherwise, the page shows the comment."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted(path for path in (ROOT / "templates").rglob("*") if path.suffix in (".html", ".txt", ".xml", ".svg"))


def open_comments(text: str) -> list[int]:
    """Return the numbers of the lines on which a comment begins and does not end."""
    return [number for number, line in enumerate(text.splitlines(), start=1) if line.count("{#") != line.count("#}")]


def test_every_comment_of_a_template_ends_on_its_line() -> None:
    found = {str(path.relative_to(ROOT)): lines for path in TEMPLATES if (lines := open_comments(path.read_text()))}

    assert found == {}


@pytest.mark.parametrize(("text", "lines"), [("{# one #}\n<p>", []), ("<p>\n{# one\ntwo #}", [2, 3])])
def test_a_comment_of_two_lines_is_found(text: str, lines: list[int]) -> None:
    assert open_comments(text) == lines
