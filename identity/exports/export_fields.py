"""What an export shows of a user: paths into the document, and the two forms of a row. Pure."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_CSV_FIELDS = 30
MOST_FIELDS = 100
LONGEST_PATH = 256
# Columns of a table for which nobody asked for columns of their own.
DEFAULT_CSV_FIELDS = (
    "user_id", "email", "email_verified", "username", "phone_number", "phone_verified", "name", "given_name", "family_name", "nickname",
    "picture", "blocked", "identities[0].connection", "last_login", "last_ip", "logins_count", "created_at", "updated_at",
)  # fmt: skip
_METADATA = ("user_metadata", "app_metadata")
_STEP = re.compile(r"\.?([^.\[\]\s]+)|\[(\d{1,3})\]")
# A spreadsheet takes a cell that begins like this for a formula (OWASP, "CSV Injection").
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-][0-9.]+")


class InvalidFields(ValueError):
    """The fields of an export do not fit; `path` says which."""

    def __init__(self, reason: str, path: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


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


def fields_of(asked: Sequence[Mapping[str, str]], *, is_table: bool, known: Sequence[str]) -> list[Field]:
    """Return the fields that were asked for; raise `InvalidFields` with the place of one that does not fit."""
    most = MOST_CSV_FIELDS if is_table else MOST_FIELDS
    if len(asked) > most:
        raise InvalidFields(f"Array is too long ({len(asked)}), maximum {most}", "fields")
    fields: list[Field] = []
    for number, item in enumerate(asked):
        field = Field(item["name"], item.get("export_as") or item["name"])
        problem = _problem(field, fields, is_table=is_table, known=known)
        if problem:
            raise InvalidFields(problem, f"fields[{number}]")
        fields.append(field)
    return fields


def _problem(field: Field, before: list[Field], *, is_table: bool, known: Sequence[str]) -> str | None:
    try:
        steps = steps_of(field.path)
    except ValueError:
        return "Not a path such as identities[0].connection"
    if steps[0] not in known:
        return f"Users have no field {str(steps[0])[:64]}"
    if is_table and len(steps) == 1 and steps[0] in _METADATA:
        return "A table takes metadata by its path alone, such as app_metadata.plan"
    if any(field.name == other.name for other in before):
        return "Two fields with the same name"
    return None


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
