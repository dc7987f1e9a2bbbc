"""What a row of a user import may hold. Pure.

A bad row never fails the job: it is counted, and kept with codes that say what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from identity.json_values import json_problem

HASHES = ("password_hash", "custom_password_hash", "mfa_factors")


@dataclass(frozen=True)
class RowProblem:
    """One thing that is wrong with a row: a closed code, a sentence, and the field."""

    code: str
    message: str
    path: str = ""

    def as_json(self) -> dict[str, str]:
        return {"code": self.code, "message": self.message, "path": self.path}


Check = Callable[[str, Any], RowProblem | None]


def _text(longest: int, pattern: str = "", shortest: int = 1) -> Check:
    compiled = re.compile(pattern) if pattern else None

    def check(name: str, value: Any) -> RowProblem | None:
        if not isinstance(value, str):
            return RowProblem("INVALID_TYPE", "Text is expected.", name)
        if len(value) > longest:
            return RowProblem("MAX_LENGTH", f"At most {longest} characters.", name)
        if len(value) < shortest:
            return RowProblem("MIN_LENGTH", f"At least {shortest} characters.", name)
        if compiled and not compiled.fullmatch(value):
            return RowProblem("PATTERN", "The value has the wrong form.", name)
        return None

    return check


def _switch(name: str, value: Any) -> RowProblem | None:
    return None if isinstance(value, bool) else RowProblem("INVALID_TYPE", "true or false is expected.", name)


def _map(name: str, value: Any) -> RowProblem | None:
    if not isinstance(value, dict):
        return RowProblem("OBJECT_REQUIRED", "An object is expected.", name)
    problem = json_problem(value)
    return RowProblem("FORMAT", problem, name) if problem else None


def _unsupported(name: str, value: Any) -> RowProblem:
    return RowProblem("NOT_PASSED", "This field is not imported by this version.", name)


_FIELDS: dict[str, Check] = {
    "email": _text(254, r"[^@\s]+@[^@\s]+\.[^@\s]+"),
    "email_verified": _switch,
    "phone_number": _text(16, r"\+[0-9]{1,15}"),
    "phone_verified": _switch,
    "user_id": _text(255, r"\S+"),
    "username": _text(128, r"[A-Za-z0-9_+\-.!#$^~@`']+"),
    "given_name": _text(150),
    "family_name": _text(150),
    "name": _text(300),
    "nickname": _text(300),
    "picture": _text(2048, r"https?://\S+"),
    "blocked": _switch,
    "app_metadata": _map,
    "user_metadata": _map,
    "password_hash": _text(60, r"\$2[ab]\$10\$[./A-Za-z0-9]{53}", shortest=60),
    "custom_password_hash": _unsupported,
    "mfa_factors": _unsupported,
}


def row_problems(row: Any) -> list[RowProblem]:
    """Return what is wrong with `row`; an empty list for a row that can be written."""
    if not isinstance(row, Mapping):
        return [RowProblem("OBJECT_REQUIRED", "Each row is an object.")]
    problems = [RowProblem("NOT_PASSED", "Unknown field.", str(name)) for name in row if name not in _FIELDS]
    for name, value in row.items():
        problem = _FIELDS[name](name, value) if name in _FIELDS else None
        if problem is None and isinstance(value, str) and json_problem(value):
            problem = RowProblem("FORMAT", str(json_problem(value)), name)
        if problem:
            problems.append(problem)
    if not any(row.get(name) for name in ("email", "username", "phone_number")):
        problems.append(RowProblem("ANY_OF_MISSING", "One of email, username and phone_number is needed."))
    return problems


def shown_row(row: Any) -> Any:
    """Return the row as an error may show it: without hashes."""
    return {name: value for name, value in row.items() if name not in HASHES} if isinstance(row, Mapping) else {}
