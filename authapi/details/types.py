"""Types of authorization details that an API registers: a schema for objects, and texts for the consent page. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from authapi.details.schema import SchemaOdd, usable_schema

MEMBER = "authorization_details"
MAX_TYPES = 50
LONGEST_TYPE = 255
LONGEST_TITLE = 100
LONGEST_SENTENCE = 500
TYPE = re.compile(r"[^\s<>\x00-\x1f\x7f]{1,255}")
# A placeholder for a member of the object or of a nested object, such as {instructedAmount.amount}.
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_PATH = re.compile(r"[^\s.{}]+(\.[^\s.{}]+)*")
_COMBINING = ("allOf", "anyOf", "oneOf", "if", "patternProperties")


@dataclass(frozen=True)
class DetailType:
    """A type of authorization details. Without a schema, the type accepts every object.

    Without a title, the consent page shows the name of the type. For each object, the page shows the sentence of the type and, below it,
    the members that the sentence omits.
    """

    name: str
    title: str = ""
    sentence: str = ""
    schema: Mapping[str, Any] | None = field(default=None, repr=False)


def types_of(settings: Mapping[str, Any]) -> dict[str, DetailType]:
    """Return the types in the settings of an API by name."""
    return {
        entry["type"]: DetailType(entry["type"], entry.get("title") or "", entry.get("sentence") or "", entry.get("schema"))
        for entry in settings.get(MEMBER) or ()
    }


def problems_of(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the errors of types to be registered, each with the position and name of its type."""
    found: list[str] = []
    seen: set[str] = set()
    for place, entry in enumerate(entries, start=1):
        name = str(entry.get("type"))
        found += [f"Type {place} ({name[:64]}): {problem}" for problem in _problems(entry)]
        if name in seen:
            found.append(f"Type {place} ({name[:64]}): Duplicate type.")
        seen.add(name)
    if len(seen) > MAX_TYPES:
        found.append(f"At most {MAX_TYPES} types.")
    return found


def _problems(entry: Mapping[str, Any]) -> Iterable[str]:
    name = entry.get("type")
    if not isinstance(name, str) or TYPE.fullmatch(name) is None:
        yield f"The name is 1 to {LONGEST_TYPE} characters without spaces and angle brackets."
    expanded: Mapping[str, Any] = {}
    if entry.get("schema") is not None:
        try:
            expanded = usable_schema(entry["schema"])
        except SchemaOdd as odd:
            yield str(odd)
    yield from _problems_of_sentence(entry.get("sentence") or "", expanded)


def _problems_of_sentence(sentence: str, schema: Mapping[str, Any]) -> Iterable[str]:
    if set("{}") & set(PLACEHOLDER.sub("", sentence)):
        yield "Unmatched brace in the sentence. Write {member} for a value."
        return
    for path in PLACEHOLDER.findall(sentence):
        if _PATH.fullmatch(path) is None:
            yield f"The sentence names {{{path[:64]}}}, which is not a member. Write {{member}} or {{member.inner}}."
        elif not _may_have(schema, path.split(".")):
            yield f"The sentence names {{{path[:64]}}}, which the schema does not have."


def _may_have(schema: Any, path: list[str]) -> bool:
    """Tell whether objects of the schema can have a member. Only `properties` is checked: if other keywords may allow the member, return
    True."""
    if not path or not isinstance(schema, dict) or any(name in schema for name in _COMBINING) or "properties" not in schema:
        return True
    return path[0] in schema["properties"] and _may_have(schema["properties"][path[0]], path[1:])
