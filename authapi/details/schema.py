"""JSON Schemas of detail types, limited so that no schema and no object can make a check slow. Pure.

An administrator of a tenant writes the schema, and any client sends objects. Schemas are read without network access. Before any
check, each reference is replaced by the schema that it names. Patterns run in linear time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson
from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_BYTES = 16 * 1024
MAX_DEPTH = 20
# The schemas are counted after references are replaced: ten definitions, each with two references to the next definition, expand to 1000
# schemas.
MAX_SCHEMAS = 1_000
MAX_PATTERNS = 20
# Memory limit for a compiled pattern, and for the states that it caches while it runs.
_PATTERN_BYTES = 1 << 20
_KEPT_VALIDATORS = 64
_LONGEST_PROBLEM = 300
_DEFINITIONS = ("$defs", "definitions")
_MAPS_OF_SCHEMAS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTS_OF_SCHEMAS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMAS = frozenset(
    {
        "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "not", "if", "then",
        "else", "contentSchema",
    }
)  # fmt: skip
# Refused, because these keywords change the target of references.
_REFUSED = ("$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor", "$vocabulary")


class SchemaOdd(ValueError):
    """The schema cannot be used. The text gives the reason."""


def usable_schema(schema: Any) -> dict[str, Any]:
    """Return a schema with its references replaced, ready for checking objects. Raises `SchemaOdd`."""
    if not isinstance(schema, dict):
        raise SchemaOdd("The schema must be a JSON object.")
    encoded = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)
    if len(encoded) > MAX_BYTES:
        raise SchemaOdd(f"The schema is longer than {MAX_BYTES} bytes.")
    expanded = _Expansion(schema).expanded()
    _validator(orjson.dumps(expanded, option=orjson.OPT_SORT_KEYS))
    return expanded


def problem_of(value: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return where and why a stored schema refuses an object, without values of the object. Empty if the schema accepts the object.

    Raises `SchemaOdd` for a schema that `usable_schema` would refuse.
    """
    validator = _stored_validator(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS))
    error = next(validator.iter_errors(value), None)
    if error is None:
        return ""
    place = ".".join(str(step) for step in error.instance_path)
    return _plain(f"{place}: {error.message}" if place else error.message)


class _Expansion:
    """Replaces each reference by the schema to which it refers, within limits. The result has no recursion and a bounded size."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._schemas = self._patterns = 0

    def expanded(self) -> dict[str, Any]:
        found = self._schema(self._root, 0)
        if not isinstance(found, dict):
            raise SchemaOdd("The schema must be a JSON object.")
        return found

    def _schema(self, schema: Any, depth: int) -> dict[str, Any] | bool:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise SchemaOdd("Each nested schema must be an object, true or false.")
        self._count(schema, depth)
        found = {name: self._keyword(name, value, depth + 1) for name, value in schema.items() if name not in ("$ref", *_DEFINITIONS)}
        if "$ref" in schema:
            found["allOf"] = [*found.get("allOf", ()), self._schema(self._named(schema["$ref"]), depth + 1)]
        return found

    def _count(self, schema: Mapping[str, Any], depth: int) -> None:
        self._schemas += 1
        self._patterns += ("pattern" in schema) + len(schema.get("patternProperties") or ())
        if depth > MAX_DEPTH:
            raise SchemaOdd(f"The schema is nested deeper than {MAX_DEPTH} levels, or a $ref leads back to itself.")
        if self._schemas > MAX_SCHEMAS:
            raise SchemaOdd(f"The schema contains more than {MAX_SCHEMAS} schemas after its references are replaced.")
        if self._patterns > MAX_PATTERNS:
            raise SchemaOdd(f"The schema has more than {MAX_PATTERNS} patterns.")
        refused = next((name for name in _REFUSED if name in schema), None)
        if refused is not None:
            raise SchemaOdd(f"The keyword {refused} is not supported.")
        if schema.get("$schema", DIALECT) != DIALECT:
            raise SchemaOdd(f"The $schema must be {DIALECT}, or left out.")

    def _keyword(self, name: str, value: Any, depth: int) -> Any:
        if name in _SCHEMAS:
            return self._schema(value, depth)
        if name in _MAPS_OF_SCHEMAS and isinstance(value, dict):
            return {key: self._schema(inner, depth) for key, inner in value.items()}
        if name in _LISTS_OF_SCHEMAS and isinstance(value, list):
            return [self._schema(inner, depth) for inner in value]
        return value

    def _named(self, reference: Any) -> Any:
        for place in _DEFINITIONS:
            prefix = f"#/{place}/"
            if isinstance(reference, str) and reference.startswith(prefix):
                name = reference.removeprefix(prefix).replace("~1", "/").replace("~0", "~")
                definitions = self._root.get(place)
                if isinstance(definitions, dict) and name in definitions:
                    return definitions[name]
        raise SchemaOdd("A $ref must name a schema of $defs, such as #/$defs/amount.")


@lru_cache(maxsize=_KEPT_VALIDATORS)
def _stored_validator(encoded: bytes) -> Draft202012Validator:
    return _validator(orjson.dumps(_Expansion(orjson.loads(encoded)).expanded(), option=orjson.OPT_SORT_KEYS))


def _validator(encoded: bytes) -> Draft202012Validator:
    try:
        return Draft202012Validator(
            orjson.loads(encoded),
            validate_formats=True,
            pattern_options=RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES),
            # Error texts are copied into URLs and logs, so they must not contain values of a request.
            mask="the value",
            offline=True,
        )
    except ValueError as error:
        raise SchemaOdd(f"Not a usable JSON Schema: {_plain(_told(error))}") from error


def _told(error: ValueError) -> str:
    """Return the error of a schema as text, with the path of the wrong part of the schema.

    The library checks the schema against the metaschema of its dialect, so the path in the error is a path in the schema.
    """
    if not isinstance(error, ValidationError):
        return str(error)
    place = ".".join(str(step) for step in error.instance_path)
    if error.kind.name == "format":
        return f"{place}: the pattern cannot run in linear time. Lookaround and back references are not supported."
    return f"{place}: {error.message}" if place else error.message


def _plain(text: str) -> str:
    """Return a text reduced to the characters allowed in `error_description` (RFC 6749, 4.1.2.1)."""
    plain = text.replace('"', "'").replace("\\", "/").encode("ascii", "replace").decode()
    return "".join(letter if letter.isprintable() else " " for letter in plain)[:_LONGEST_PROBLEM]
