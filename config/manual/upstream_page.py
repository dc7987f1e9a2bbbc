"""The page of every operation that client libraries know, with its standing, from the table that the service itself reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from config.manual.markdown import code, page, table
from config.upstream import table as upstream

_INTRODUCTION = """# Operations of client libraries

The management libraries of another vendor drive this service unmodified. This page names every operation that they know, by its method
and path and by its name in the Python library, and says what becomes of it here: {counts}.

- **served**: the operation works, as its page in this manual says.
- **neutral**: there is nothing of the kind here, for the reason that stands beside it. A read answers what is always so, such as an empty
  list or a switch that is off; a write of the same is taken, so that a program can send back what it has read; any other is refused.
- **refused**: the operation will not come; the reason says why, and what there is instead.
- **planned**: the operation is not there yet.
- **addition**: the operation is of this service alone, and in no library.

An operation that is refused or planned answers 404 with the usual body and `operation_not_supported` in `errorCode`, once the token is
good. An address that is in no row of this page answers 404 without a code."""


def upstream_page() -> str:
    """Return the page."""
    entries = upstream.table()
    counts = Counter(entry.kind for entry in entries)
    listed = ", ".join(f"{counts[kind]} {kind}" for kind in upstream.Kind if counts[kind])
    return page(_INTRODUCTION.format(counts=listed), *_sections(entries))


def _sections(entries: Iterable[upstream.Entry]) -> Iterable[str]:
    for resource, group in groupby(entries, key=lambda entry: entry.segments[0]):
        yield f"## {resource}"
        yield table(
            ("Operation", "In the Python library", "Standing", "Why"),
            ((code(f"{entry.method} /{entry.path}"), code(entry.name), entry.kind, entry.reason) for entry in group),
        )
