"""Read-only tables below the form of a row: related rows of other tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django import forms


@dataclass(frozen=True)
class Cell:
    """A cell of a table; with `url` its text is a link. `note` is a second line.

    `copied` is an identifier, shown with a button that copies it.
    """

    text: str
    url: str = ""
    note: str = ""
    copied: str = ""


@dataclass(frozen=True)
class PanelForm:
    """A form at the head of a table. The form adds a row to the table."""

    form: forms.Form
    url: str
    label: str


@dataclass(frozen=True)
class Panel:
    """A table with a title, a text that is shown if the table has no rows, and an optional link to the whole list."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]] = field(default_factory=tuple)
    empty_text: str = "Nothing here yet."
    more_url: str = ""
    more_text: str = ""
    # Whether the link to the whole list is also shown if the table has no rows.
    is_more_of_use: bool = False
    # A link at the head of the table, with which staff add a row.
    add_url: str = ""
    add_text: str = ""
    # The name of the action whose form adds a row to this table. The page sets `form` if the account may use the action.
    adds: str = ""
    form: PanelForm | None = None


@dataclass(frozen=True)
class Tab:
    """A link to one part of a row's page. `label` is the name of the part."""

    label: str
    url: str
    is_current: bool


def figures(title: str, rows: Iterable[Sequence[object]], **more: Any) -> Panel:
    """Return a panel whose rows have a name, a value and an explanation."""
    return Panel(title, ("", "", ""), [[Cell(str(text)) for text in row] for row in rows], **more)
