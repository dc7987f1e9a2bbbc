"""Lines of an export: members of a document, found by their paths, as a line of JSON or a record of a table. Pure."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_STEP = re.compile(r"\.?([^.\[\]\s]+)|\[(\d{1,3})\]")
# A spreadsheet takes a cell that begins like this for a formula (OWASP, "CSV Injection").
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-][0-9.]+")


@dataclass(frozen=True)
class Field:
    """A member of the document, and the name under which it is exported."""

    path: str
    name: str

    def value_in(self, document: Mapping[str, Any]) -> Any:
        """Return the member, or None where the document has none."""
        value: Any = document
        for step in steps_of(self.path):
            if isinstance(step, int):
                value = value[step] if isinstance(value, list) and step < len(value) else None
            else:
                value = value.get(step) if isinstance(value, dict) else None
        return value


def steps_of(path: str) -> list[str | int]:
    """Return the names and places of a path such as `identities[0].connection`; raise `ValueError` when it is none."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or (not steps and path[at] in ".["):
            raise ValueError(path)
        steps.append(found[1] if found[2] is None else int(found[2]))
        at = found.end()
        if steps[1:] and isinstance(steps[-1], str) and path[found.start()] != ".":
            raise ValueError(path)
    if not steps:
        raise ValueError(path)
    return steps


def line_of(fields: Sequence[Field]) -> Callable[[Mapping[str, Any]], str]:
    """Return what makes a line of JSON of a document: the whole one, or the members that were asked for and are there."""
    if not fields:
        return lambda document: _json(document) + "\n"

    def chosen(document: Mapping[str, Any]) -> str:
        found = ((field.name, field.value_in(document)) for field in fields)
        return _json({name: value for name, value in found if value is not None}) + "\n"

    return chosen


def record_of(fields: Sequence[Field]) -> Callable[[Mapping[str, Any]], str]:
    """Return what makes a record of a table of a document (RFC 4180)."""
    return lambda document: _record([_cell(field.value_in(document)) for field in fields])


def heading_of(fields: Sequence[Field]) -> str:
    """Return the first record, the names of the columns."""
    return _record([_harmless(field.name) for field in fields])


def _record(cells: list[str]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerow(cells)
    return written.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return _harmless(value) if isinstance(value, str) else _json(value)


def _harmless(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would run; a signed number, such as a phone number, is none."""
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
