"""Builds the page that lists every operation of client libraries and its support, from the table that the service itself reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from config.manual.markdown import code, page, table
from config.upstream import table as upstream

_INTRODUCTION = """# Operations of client libraries

The management libraries of another vendor work with this service unmodified. This page lists every operation of these libraries, with
method, path and name in the Python library, and states how this service supports the operation: {counts}.

- **served**: the operation works, as its page in this manual says.
- **neutral**: the service does not have the feature, for the listed reason. A read returns a constant, such as an empty list or a
  disabled switch. The service accepts a write of the same value, so that a program can send back what it has read. It refuses any
  other value.
- **refused**: the operation is not planned; the reason names an alternative.
- **planned**: the operation is not available yet.
- **addition**: the operation exists only in this service, and in no library.

An operation that is refused or planned answers 404 with the usual body and `operation_not_supported` in `errorCode`, if the token is
valid. For a path that is in no row of this page, the answer is 404 without a code."""


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
            ("Operation", "In the Python library", "Support", "Reason"),
            ((code(f"{entry.method} /{entry.path}"), code(entry.name), entry.kind, entry.reason) for entry in group),
        )
