"""Event data as JSON Schema: one document for all types, and its fields as rows of a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from events.record.catalogue import EVENT_TYPES
from events.record.schemas import SCHEMAS

Field = tuple[str, str, str]

_JSON_WORDS = {"string": "text", "boolean": "true or false", "integer": "whole number", "object": "object, open", "array": "list"}


def schema_document() -> str:
    """Return a JSON Schema document with a definition of the data of every event type, by the name of the type."""
    document: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Data of events",
        "description": "`$defs` contains, for each event type, the schema of `data` in the envelope. Every object is closed.",
        "$defs": {name: SCHEMAS[name].json_schema() for name in EVENT_TYPES},
    }
    # The schema of the context is the same for all types, so it is defined once.
    for schema in list(document["$defs"].values()):
        document["$defs"]["context"] = schema["properties"]["context"]
        schema["properties"]["context"] = {"$ref": "#/$defs/context"}
    return json.dumps(document, indent=1) + "\n"


def fields_of(schema: dict[str, Any], path: str = "") -> Iterator[Field]:
    """Yield path, type and presence of every field below an object, outer fields first; variants one after the other."""
    for variant in schema.get("oneOf", [schema]):
        for name, field in variant.get("properties", {}).items():
            place = f"{path}.{name}" if path else name
            presence = "always" if name in variant["required"] else "may be left out"
            yield place, _words(field), presence
            yield from fields_of(field.get("items", field), f"{place}[]" if field.get("type") == "array" else place)


def merged(rows: Iterator[Field]) -> list[Field]:
    """Return the fields of all variants, each once; a field that only some variants have is optional."""
    found: dict[str, list[Field]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    most = max((len(same) for same in found.values()), default=0)
    return [_one(same, everywhere=len(same) == most or not _is_variant(name, found)) for name, same in found.items()]


def _is_variant(name: str, found: dict[str, list[Field]]) -> bool:
    # The number of variants is unknown here. If another field of the same object occurs in more variants, some variants lack this field.
    parent = name.rpartition(".")[0]
    return any(len(same) > len(found[name]) for other, same in found.items() if other.rpartition(".")[0] == parent)


def _one(same: list[Field], *, everywhere: bool) -> Field:
    words = " or ".join(dict.fromkeys(words for _, words, _ in same))
    return same[0][0], words, same[0][2] if everywhere else "depends on the type"


def _words(field: dict[str, Any]) -> str:
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return "one of " + ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("format") == "date-time":
        return "time"
    if "oneOf" in field or "properties" in field:
        return "object"
    if field.get("type") == "array":
        return "list of objects" if "properties" in field["items"] else f"list of {_words(field['items'])}"
    return _JSON_WORDS[field["type"]]
