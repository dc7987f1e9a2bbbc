"""Checks a row of a user import. Pure.

An invalid row never fails the job: it is counted, and stored with codes that say what is wrong.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from foundation.json_values import RESERVED_APP_METADATA, json_problem, text_problem
from identity.imports import imported_passwords

# Secret members. They are not part of the profile, and no response shows them.
SECRETS = ("password_hash", "custom_password_hash", "mfa_factors")
_MOST_FACTORS = 10
_LONGEST_SHOWN = 2000
_SHOWN_OF_LONG_ROWS = ("user_id", "email", "username", "phone_number", "name")


@dataclass(frozen=True)
class RowProblem:
    """One error in a row: a code from a closed list, a message, and the field."""

    code: str
    message: str
    path: str = ""

    def as_json(self) -> dict[str, str]:
        return {"code": self.code, "message": _shown_text(self.message), "path": _shown_text(self.path)}


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
        problem = text_problem(value)
        return RowProblem("FORMAT", problem, name) if problem else None

    return check


def _switch(name: str, value: Any) -> RowProblem | None:
    return None if isinstance(value, bool) else RowProblem("INVALID_TYPE", "true or false is expected.", name)


def _map(name: str, value: Any) -> RowProblem | None:
    if not isinstance(value, dict):
        return RowProblem("OBJECT_REQUIRED", "An object is expected.", name)
    problem = json_problem(value)
    return RowProblem("FORMAT", problem, name) if problem else None


def _app_metadata(name: str, value: Any) -> RowProblem | None:
    taken = sorted(RESERVED_APP_METADATA & value.keys()) if isinstance(value, dict) else []
    return RowProblem("NOT_PASSED", f"Property names are reserved: {', '.join(taken)}.", name) if taken else _map(name, value)


def _custom_password_hash(name: str, value: Any) -> RowProblem | None:
    try:
        imported_passwords.check(value)
    except imported_passwords.Unusable as problem:
        return RowProblem(problem.code, problem.message, f"{name}.{problem.path}".rstrip("."))
    return None


def _totp_secret(name: str, value: Any) -> RowProblem | None:
    problem = _text(512, r"[A-Za-z2-7]+=*", shortest=8)(name, value)
    if problem:
        return problem
    try:
        base64.b32decode(value.upper().rstrip("=") + "=" * (-len(value.rstrip("=")) % 8))
    except ValueError:
        return RowProblem("FORMAT", "Base32 is expected.", name)
    return None


def _factors(name: str, value: Any) -> RowProblem | None:
    if not isinstance(value, list):
        return RowProblem("INVALID_TYPE", "A list is expected.", name)
    if not value:
        return RowProblem("ARRAY_LENGTH_SHORT", "At least one factor.", name)
    if len(value) > _MOST_FACTORS:
        return RowProblem("ARRAY_LENGTH_LONG", f"At most {_MOST_FACTORS} factors.", name)
    return next((problem for number, factor in enumerate(value) if (problem := _factor(f"{name}[{number}]", factor))), None)


def _factor(name: str, factor: Any) -> RowProblem | None:
    if not isinstance(factor, dict):
        return RowProblem("OBJECT_REQUIRED", "An object is expected.", name)
    kind = next(iter(factor), "")
    if len(factor) != 1 or kind not in _FACTORS:
        return RowProblem("MFA_FACTORS_FAILED", f"One of {', '.join(_FACTORS)} is expected.", name)
    member, check = _FACTORS[kind]
    inner = factor[kind]
    if not isinstance(inner, dict) or set(inner) != {member}:
        return RowProblem("OBJECT_REQUIRED", f"An object with only {member} is expected.", f"{name}.{kind}")
    return check(f"{name}.{kind}.{member}", inner[member])


_email = _text(254, r"[^@\s]+@[^@\s]+\.[^@\s]+")
_phone_number = _text(16, r"\+[0-9]{1,15}")
_FACTORS: dict[str, tuple[str, Check]] = {
    "totp": ("secret", _totp_secret),
    "phone": ("value", _phone_number),
    "email": ("value", _email),
}
_FIELDS: dict[str, Check] = {
    "email": _email,
    "email_verified": _switch,
    "phone_number": _phone_number,
    "phone_verified": _switch,
    "user_id": _text(255, r"\S+"),
    "username": _text(128, r"[A-Za-z0-9_+\-.!#$^~@`']+"),
    "given_name": _text(150),
    "family_name": _text(150),
    "name": _text(300),
    "nickname": _text(300),
    "picture": _text(2048, r"https?://\S+"),
    "blocked": _switch,
    "app_metadata": _app_metadata,
    "user_metadata": _map,
    "password_hash": _text(60, r"\$2[ab]\$10\$[./A-Za-z0-9]{53}", shortest=60),
    "custom_password_hash": _custom_password_hash,
    "mfa_factors": _factors,
}


def row_problems(row: Any, *, takes_username: bool = True) -> list[RowProblem]:
    """Return the errors in `row`; an empty list for a valid row."""
    if not isinstance(row, Mapping):
        return [RowProblem("OBJECT_REQUIRED", "Each row is an object.")]
    problems = [RowProblem("NOT_PASSED", "Unknown field.", str(name)[:64]) for name in row if name not in _FIELDS]
    found = (_FIELDS[name](name, value) for name, value in row.items() if name in _FIELDS)
    problems += [problem for problem in found if problem]
    if not any(row.get(name) for name in ("email", "username", "phone_number")):
        problems.append(RowProblem("ANY_OF_MISSING", "One of the members email, username and phone_number is needed."))
    if "username" in row and not takes_username:
        problems.append(RowProblem("NOT_PASSED", "The connection does not support usernames.", "username"))
    if "password_hash" in row and "custom_password_hash" in row:
        problems.append(
            RowProblem("NOT_PASSED", "Only one of the members password_hash and custom_password_hash is allowed.", "custom_password_hash")
        )
    return problems


def profile_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the profile in a row, without the id and the secrets."""
    return {name: value for name, value in row.items() if name != "user_id" and name not in SECRETS}


def stored_password(row: Mapping[str, Any]) -> str:
    """Return the stored form of the hash in the row; empty without a hash."""
    if "password_hash" in row:
        return imported_passwords.bcrypt_form(row["password_hash"])
    return imported_passwords.stored_form(row["custom_password_hash"]) if "custom_password_hash" in row else ""


def shown_row(row: Any) -> dict[str, Any]:
    """Return the row for an error report: without secrets, safe to store, and shortened to the identifying members if it is long."""
    if not isinstance(row, Mapping):
        return {}
    kept = {name: value for name, value in row.items() if name not in SECRETS}
    if len(str(kept)) > _LONGEST_SHOWN:
        kept = {name: value[:300] for name, value in kept.items() if name in _SHOWN_OF_LONG_ROWS and isinstance(value, str)}
    return {_shown_text(str(name)): _shown(value) for name, value in kept.items()}


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return _shown_text(value)
    return None if json_problem(value) else value


def _shown_text(value: str) -> str:
    return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
