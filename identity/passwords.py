"""Checks passwords against the policy in the options of a database connection. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

POLICIES = ("none", "low", "fair", "good", "excellent")
DEFAULT_POLICY = "good"
LONGEST = 512

_SHORTEST = {"none": 1, "low": 6, "fair": 8, "good": 8, "excellent": 10}
_LOWER, _UPPER, _DIGIT, _SPECIAL = (re.compile(pattern) for pattern in (r"[a-z]", r"[A-Z]", r"[0-9]", r"[^a-zA-Z0-9]"))
_THREE_IN_A_ROW = re.compile(r"(.)\1\1", re.DOTALL)
_SHORTEST_PERSONAL_PART = 4
_USUAL_HISTORY, _LONGEST_HISTORY = 5, 24


class Weakness(Enum):
    """Codes of refusals, with the names that clients expect."""

    STRENGTH = "PasswordStrengthError"
    DICTIONARY = "PasswordDictionaryError"
    PERSONAL = "PasswordNoUserInfoError"
    HISTORY = "PasswordHistoryError"
    BREACHED = "PasswordBreachedError"


@dataclass(frozen=True)
class PasswordProblem:
    """Why a password is refused. The text never contains the password."""

    weakness: Weakness
    text: str


BREACHED = PasswordProblem(Weakness.BREACHED, "Password was found in a breach of another service")
USED_BEFORE = PasswordProblem(Weakness.HISTORY, "Password has been used before")


def password_problem(
    password: str, options: Mapping[str, Any], personal: Iterable[str | None] = (), *, common: Container[str] = ()
) -> PasswordProblem | None:
    """Return why `password` is too weak for a connection with these options, or None.

    `personal` are the user's own names and addresses, which the password must not contain if the connection enables this rule. `common` are
    the most frequent passwords, in lower case, which are refused if the connection enables its dictionary.
    """
    policy = policy_of(options)
    shortest = shortest_length(options)
    if not shortest <= len(password) <= LONGEST:
        return PasswordProblem(Weakness.STRENGTH, f"Password must have {shortest} to {LONGEST} characters")
    if not _has_classes(password, policy):
        return PasswordProblem(Weakness.STRENGTH, f"Password is too weak for the policy {policy}")
    if _member(options, "password_dictionary", "enable") and (password.lower() in common or password.lower() in _dictionary(options)):
        return PasswordProblem(Weakness.DICTIONARY, "Password is not allowed by the dictionary")
    if _member(options, "password_no_personal_info", "enable") and _holds_any(password, personal):
        return PasswordProblem(Weakness.PERSONAL, "Password contains personal data")
    return None


def policy_of(options: Mapping[str, Any]) -> str:
    """Return the name of the policy that applies."""
    named = options.get("passwordPolicy")
    return named if named in POLICIES else DEFAULT_POLICY


def shortest_length(options: Mapping[str, Any]) -> int:
    """Return the minimum length of a password in characters."""
    own = _member(options, "password_complexity_options", "min_length")
    return own if isinstance(own, int) and not isinstance(own, bool) and own > 0 else _SHORTEST[policy_of(options)]


def history_size(options: Mapping[str, Any]) -> int:
    """Return the number of former passwords that are refused; 0 if there is no history."""
    if not _member(options, "password_history", "enable"):
        return 0
    size = _member(options, "password_history", "size")
    return min(max(size, 0), _LONGEST_HISTORY) if isinstance(size, int) and not isinstance(size, bool) else _USUAL_HISTORY


def _has_classes(password: str, policy: str) -> bool:
    classes = [bool(pattern.search(password)) for pattern in (_LOWER, _UPPER, _DIGIT, _SPECIAL)]
    if policy == "fair":
        return all(classes[:3])
    if policy in ("good", "excellent") and sum(classes) < 3:
        return False
    return not (policy == "excellent" and _THREE_IN_A_ROW.search(password))


def _dictionary(options: Mapping[str, Any]) -> set[str]:
    words = _member(options, "password_dictionary", "dictionary")
    return {word.lower() for word in words if isinstance(word, str)} if isinstance(words, list) else set()


def _holds_any(password: str, personal: Iterable[str | None]) -> bool:
    parts = {part for text in personal if text for part in (text.lower(), text.lower().partition("@")[0])}
    return any(len(part) >= _SHORTEST_PERSONAL_PART and part in password.lower() for part in parts)


def _member(options: Mapping[str, Any], name: str, inner: str) -> Any:
    value = options.get(name)
    return value.get(inner) if isinstance(value, dict) else None
