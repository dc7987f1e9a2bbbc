"""Writes each document of an export as a line of JSON or as a CSV record. Paths select the members of the document to write. Pure."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_STEP = re.compile(r"\.?([^.\[\]\s]+)|\[(\d{1,3})\]")
# Spreadsheets treat a cell with these first characters as a formula (OWASP, "CSV Injection").
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-][0-9.]+")


@dataclass(frozen=True)
class Field:
    """A member of the document, and its name in the export."""

    path: str
    name: str

    def value_in(self, document: Mapping[str, Any]) -> Any:
        """Return the member, or None if the document lacks it."""
        value: Any = document
        for step in steps_of(self.path):
            if isinstance(step, int):
                value = value[step] if isinstance(value, list) and step < len(value) else None
            else:
                value = value.get(step) if isinstance(value, dict) else None
        return value


def steps_of(path: str) -> list[str | int]:
    """Return the names and indexes of a path such as `identities[0].connection`; raise `ValueError` when it is invalid."""
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
    """Return a function that writes a document as a line of JSON: the whole document, or its requested members."""
    if not fields:
        return lambda document: _json(document) + "\n"

    def chosen(document: Mapping[str, Any]) -> str:
        found = ((field.name, field.value_in(document)) for field in fields)
        return _json({name: value for name, value in found if value is not None}) + "\n"

    return chosen


def record_of(fields: Sequence[Field]) -> Callable[[Mapping[str, Any]], str]:
    """Return a function that writes a document as a CSV record (RFC 4180)."""
    return lambda document: _record([_cell(field.value_in(document)) for field in fields])


def heading_of(fields: Sequence[Field]) -> str:
    """Return the first record: the column names."""
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
    """Put an apostrophe before text that a spreadsheet would run; signed numbers such as phone numbers stay unchanged."""
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
