"""Checks JSON values before they are stored: every reader of an event must get the same value. Pure."""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 64
_LARGEST = 2**63
# Names that `app_metadata` must not contain, because the service uses them for its own data about a user.
RESERVED_APP_METADATA = frozenset(
    {
        "__tenant", "_id", "blocked", "clientID", "created_at", "email_verified", "email", "globalClientID", "global_client_id",
        "identities", "lastIP", "lastLogin", "loginsCount", "metadata", "multifactor_last_modified", "multifactor", "updated_at", "user_id",
    }
)  # fmt: skip


def json_problem(value: Any, *, depth: int = 0) -> str | None:
    """Return a sentence that says why `value` is refused, or None.

    Texts must not contain NUL or lone surrogates. Numbers must fit into 64 bits. Objects and lists nest at most 64 deep.
    """
    if depth > MAX_DEPTH:
        return f"Nested deeper than {MAX_DEPTH} levels."
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            return "A key that is not text."
        return _first_problem([*value.keys(), *value.values()], depth + 1)
    if isinstance(value, list):
        return _first_problem(value, depth + 1)
    return _scalar_problem(value)


def _first_problem(members: list[Any], depth: int) -> str | None:
    problems = (json_problem(member, depth=depth) for member in members)
    return next((problem for problem in problems if problem), None)


def _scalar_problem(value: Any) -> str | None:
    if isinstance(value, str):
        return text_problem(value)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        # PostgreSQL returns a large decimal as an integer, so the same bound applies to integers and decimals.
        return None if -_LARGEST <= value < _LARGEST else "A number beyond 64 bits."
    return "Not a JSON value."


def text_problem(value: str) -> str | None:
    """Return the reason why PostgreSQL or UTF-8 cannot store the text `value`, or None."""
    if "\x00" in value:
        return "Text with a NUL character."
    try:
        value.encode()
    except UnicodeEncodeError:
        return "Text with a lone surrogate."
    return None


def storable(text: str) -> str:
    """Return `text` without characters that PostgreSQL or UTF-8 cannot store, for log lines that must always be written."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def merged(old: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Return `old` with `change` merged into its first level; null removes a member."""
    return {name: value for name, value in {**old, **change}.items() if value is not None}
