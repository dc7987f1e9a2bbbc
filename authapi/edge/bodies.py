"""Parses bodies of POST requests, as JSON or form: drops unset values and limits sizes. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import orjson

MAX_BODY_BYTES = 64 * 1024
_MAX_FIELDS = 200
# Values that client libraries send for "not set".
_ABSENT = (None, "", "None", "undefined")
# RFC 8707, 2: the only parameter that may be repeated. Repeated values become a list.
_REPEATABLE = "resource"


class MalformedBody(ValueError):
    """The body cannot be read."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def parse_body(content_type: str, body: bytes) -> dict[str, Any]:
    """Return the members of a JSON object or a form, without unset values. Raises `MalformedBody` with an error text."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == "application/json":
        members = _json_members(body)
    elif media_type == "application/x-www-form-urlencoded":
        members = _form_members(body)
    else:
        raise MalformedBody("The content type must be application/json or application/x-www-form-urlencoded.")
    present = {name: value for name, value in members.items() if value not in _ABSENT}
    if any("\x00" in value for value in present.values() if isinstance(value, str)):
        raise MalformedBody("A value contains a NUL character.")
    return present


def _json_members(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        members = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedBody("The body is not valid JSON.") from error
    if not isinstance(members, dict):
        raise MalformedBody("The body must be a JSON object.")
    return members


def _form_members(body: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError as error:
        raise MalformedBody("The body is not a valid form.") from error
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            if name == _REPEATABLE:
                first = members[name]
                members[name] = [*first, value] if isinstance(first, list) else [first, value]
                continue
            # RFC 6749, 3.2: parameters must not be included more than once.
            raise MalformedBody(f"The parameter {name[:64]} is repeated.")
        members[name] = value
    return members
