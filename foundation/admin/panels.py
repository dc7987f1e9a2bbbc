"""Read-only tables below the form of a row: what belongs to it elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """One cell; with `url` it is a link."""

    text: str
    url: str = ""


@dataclass(frozen=True)
class Panel:
    """A titled table with one sentence for when it is empty, and a link to the whole list where there is one."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]] = field(default_factory=tuple)
    empty_text: str = "Nothing here yet."
    more_url: str = ""
    more_text: str = ""


def figures(title: str, rows: Iterable[Sequence[object]], **more: str) -> Panel:
    """Return a panel whose rows are a name, a figure and what it means."""
    return Panel(title, ("", "", ""), [[Cell(str(text)) for text in row] for row in rows], **more)
