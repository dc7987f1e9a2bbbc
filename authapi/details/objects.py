"""Authorization details sent by clients: parsed within limits, and checked against the types of an API. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from authapi.details.schema import SchemaOdd, problem_of
from authapi.details.types import LONGEST_TYPE, DetailType
from foundation.json_values import json_problem

Detail = Mapping[str, Any]
MAX_BYTES = 8 * 1024
MAX_OBJECTS = 20
MAX_DEPTH = 8
_TOO_LONG = f"The authorization_details are longer than {MAX_BYTES} bytes."
# RFC 9396, 2.2: lists of strings that an object of any type may have.
LISTS = ("locations", "actions", "datatypes", "privileges")


class DetailsRefused(ValueError):
    """The details cannot be granted. The text gives the reason without any of their values."""


def read_details(sent: Any) -> tuple[Detail, ...]:
    """Return the objects of a parameter, which is JSON text or a list. Does not check types. Raises `DetailsRefused`."""
    if isinstance(sent, str):
        sent = _read(sent)
    if not isinstance(sent, list) or not sent:
        raise DetailsRefused("The authorization_details must be a JSON array with at least one object.")
    if len(sent) > MAX_OBJECTS:
        raise DetailsRefused(f"The authorization_details have more than {MAX_OBJECTS} objects.")
    for place, each in enumerate(sent, start=1):
        problem = _problem(each)
        if problem:
            raise DetailsRefused(f"Object {place} of the authorization_details: {problem}")
    if len(orjson.dumps(sent)) > MAX_BYTES:
        raise DetailsRefused(_TOO_LONG)
    return tuple(sent)


def judge(details: tuple[Detail, ...], types: Mapping[str, DetailType], *, audience: str) -> None:
    """Raise `DetailsRefused` if an object has an unknown type, is for another API, or does not match the schema of its type."""
    for place, each in enumerate(details, start=1):
        problem = _problem_at_api(each, types, audience)
        if problem:
            raise DetailsRefused(f"Object {place} of the authorization_details: {problem}")


def accepted(details: tuple[Detail, ...], types: Mapping[str, DetailType], *, audience: str) -> tuple[Detail, ...]:
    """Return the objects that `judge` would accept, and drop the others."""
    return tuple(each for each in details if not _problem_at_api(each, types, audience))


def _read(text: str) -> Any:
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise DetailsRefused(_TOO_LONG)
    try:
        return orjson.loads(text)
    except (ValueError, RecursionError) as error:
        raise DetailsRefused("The authorization_details are not valid JSON.") from error


def _problem(value: Any) -> str:
    if not isinstance(value, dict):
        return "It is not an object."
    name = value.get("type")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_TYPE:
        return "It has no type."
    if _depth(value, MAX_DEPTH) < 0:
        return f"It is nested deeper than {MAX_DEPTH} levels."
    problem = json_problem(value)
    if problem:
        return problem
    odd = next((name for name in LISTS if name in value and not _is_list_of_texts(value[name])), None)
    if odd:
        return f"Its {odd} must be an array of strings."
    return "" if isinstance(value.get("identifier", ""), str) else "Its identifier must be a string."


def _depth(value: Any, left: int) -> int:
    """Return how many of the `left` levels of nesting the value does not use; negative if it is nested too deeply."""
    if left < 0 or not isinstance(value, dict | list):
        return left
    inner = value.values() if isinstance(value, dict) else value
    return min((_depth(each, left - 1) for each in inner), default=left)


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _problem_at_api(value: Detail, types: Mapping[str, DetailType], audience: str) -> str:
    known = types.get(value["type"])
    if known is None:
        # An unknown type and a type that this client may not use have the same error.
        return "The API has no such type for this client."
    if not all(_is_at(location, audience) for location in value.get("locations", ())):
        return "Its locations must be the audience of the API, or addresses below the audience."
    if known.schema is None:
        return ""
    try:
        return problem_of(value, known.schema)
    except SchemaOdd as odd:
        return str(odd)


def _is_at(location: str, audience: str) -> bool:
    """Tell whether a location belongs to the API. A token for this API must not name other locations, because it is not valid there."""
    return location == audience or (location.startswith(audience.rstrip("/") + "/") and "/../" not in f"{location}/")
