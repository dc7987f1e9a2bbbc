"""Stores database rows as JSON, and computes the rows that a document had before its unrecorded changes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Image = dict[str, Any]


@dataclass(frozen=True)
class RowMark:
    """A changed row of a document. `image` is the row before the change, or None if the row did not exist."""

    table: str
    key: str
    image: Image | None
    marked_at: datetime


@dataclass(frozen=True)
class Rows:
    """The rows of one document: its root (None if there is no root), and the rows of its parts by table and key."""

    root: Image | None
    parts: Mapping[str, Mapping[str, Image]] = field(default_factory=dict)


def rows_before(now: Rows, marks: Iterable[RowMark], *, root_table: str) -> Rows:
    """Return the document's rows as they were before the marked changes."""
    root = now.root
    parts = {table: dict(rows) for table, rows in now.parts.items()}
    for mark in marks:
        if mark.table == root_table:
            root = mark.image
        elif mark.image is None:
            parts.setdefault(mark.table, {}).pop(mark.key, None)
        else:
            parts.setdefault(mark.table, {})[mark.key] = mark.image
    return Rows(root, parts)


def referenced_keys(rows: Iterable[Rows], column: str) -> set[str]:
    """Return the values of `column` in the root and the parts of `rows`."""
    found: set[str] = set()
    for document in rows:
        images = [document.root] if document.root is not None else []
        for part in document.parts.values():
            images.extend(part.values())
        found.update(str(image[column]) for image in images if image.get(column) is not None)
    return found
