"""Rules that check values and describe themselves as JSON Schema, and resources that are declared with these rules. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from foundation.timestamps import wire_time

Schema = dict[str, Any]

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_EMPTY: tuple[Any, ...] = (None, "", [], {})


class SchemaViolation(ValueError):
    """The data of an event does not fit the schema of its type."""


class Rule(Protocol):
    """A rule for one value; `path` names the value in a refusal."""

    def __call__(self, value: Any, path: str) -> None: ...

    def json_schema(self) -> Schema: ...


@dataclass(frozen=True)
class Kind:
    """A value of one JSON type."""

    expected: type
    words: str
    json_type: str

    def __call__(self, value: Any, path: str) -> None:
        if not isinstance(value, self.expected) or (isinstance(value, bool) and self.expected is not bool):
            raise SchemaViolation(f"{path}: {self.words} is expected.")

    def json_schema(self) -> Schema:
        return {"type": self.json_type}


@dataclass(frozen=True)
class Moment:
    """A time in UTC with milliseconds."""

    def __call__(self, value: Any, path: str) -> None:
        if not isinstance(value, str) or _TIME.fullmatch(value) is None:
            raise SchemaViolation(f"{path}: a time with milliseconds and Z is expected.")

    def json_schema(self) -> Schema:
        return {"type": "string", "format": "date-time", "pattern": f"^{_TIME.pattern}$"}


@dataclass(frozen=True)
class OneOf:
    """One of a closed set of texts."""

    values: tuple[str, ...]

    def __call__(self, value: Any, path: str) -> None:
        if value not in self.values:
            raise SchemaViolation(f"{path}: one of {', '.join(self.values)} is expected.")

    def json_schema(self) -> Schema:
        return {"type": "string", "enum": list(self.values)}


@dataclass(frozen=True)
class ListOf:
    """A list whose items follow one rule."""

    item: Rule

    def __call__(self, value: Any, path: str) -> None:
        if not isinstance(value, list):
            raise SchemaViolation(f"{path}: a list is expected.")
        for index, item in enumerate(value):
            self.item(item, f"{path}[{index}]")

    def json_schema(self) -> Schema:
        return {"type": "array", "items": self.item.json_schema()}


@dataclass(frozen=True)
class Shape:
    """An object that has all required fields and may have the optional fields, but no other field."""

    required: dict[str, Rule]
    optional: dict[str, Rule]

    def __call__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise SchemaViolation(f"{path}: an object is expected.")
        for name in self.required:
            if name not in value:
                raise SchemaViolation(f"{path}.{name}: missing.")
        for name, member in value.items():
            check = self.required.get(name) or self.optional.get(name)
            if check is None:
                raise SchemaViolation(f"{path}.{name}: not a field of this object.")
            check(member, f"{path}.{name}")

    def json_schema(self) -> Schema:
        properties = {name: rule.json_schema() for name, rule in (*self.required.items(), *self.optional.items())}
        return {"type": "object", "required": list(self.required), "properties": properties, "additionalProperties": False}


@dataclass(frozen=True)
class Variants:
    """An object of one of several shapes, distinguished by the text of one field."""

    field: str
    shapes: dict[str, Shape]

    def __call__(self, value: Any, path: str) -> None:
        mapping(value, path)
        shape = self.shapes.get(str(value.get(self.field)))
        if shape is None:
            raise SchemaViolation(f"{path}.{self.field}: one of {', '.join(self.shapes)} is expected.")
        shape(value, path)

    def json_schema(self) -> Schema:
        return {"oneOf": list(self._schemas())}

    def _schemas(self) -> Iterator[Schema]:
        for name, shape in self.shapes.items():
            schema = shape.json_schema()
            schema["properties"][self.field] = {"const": name}
            yield schema


text = Kind(str, "text", "string")
switch = Kind(bool, "true or false", "boolean")
whole = Kind(int, "a whole number", "integer")
mapping = Kind(dict, "an object", "object")
moment = Moment()


@dataclass(frozen=True)
class Field:
    """A field of a resource: its rule, whether events have it, and what the OpenAPI document adds to the type.

    `shown` replaces the rule in the OpenAPI document, if the document describes the field in less detail than the events.
    """

    rule: Rule
    said: Schema
    is_recorded: bool = True
    is_required: bool = False
    shown: Rule | None = None

    @property
    def schema(self) -> Schema:
        """The description of the field in the OpenAPI document."""
        # The schemas of events contain a pattern for times. The OpenAPI document omits it.
        plain = {"type": "string", "format": "date-time"} if self.rule is moment else (self.shown or self.rule).json_schema()
        return plain | self.said


def always(rule: Rule, **said: Any) -> Field:
    """Return a field that every event of the resource has."""
    return Field(rule, said, is_required=True)


def maybe(rule: Rule, *, shown: Rule | None = None, **said: Any) -> Field:
    """Return a field that events omit when it is empty."""
    return Field(rule, said, shown=shown)


def unrecorded(rule: Rule, **said: Any) -> Field:
    """Return a field that only the management interface shows."""
    return Field(rule, said, is_recorded=False)


class Resource:
    """The only declaration of a resource: the source of its two schemas (OpenAPI document, events) and of the order of its JSON members.

    Fields are in the order of the OpenAPI document. Events have another published order, and the JSON of the resource has a third order.
    These orders may not change. If the position of a field differs in events (or in the JSON), `in_events` (or `in_documents`) maps the
    field to the field that precedes it.
    """

    def __init__(
        self, fields: dict[str, Field], *, in_events: Mapping[str, str] | None = None, in_documents: Mapping[str, str] | None = None
    ) -> None:
        self.fields = fields
        self.names = tuple(fields)
        self.recorded = tuple(name for name in fields if fields[name].is_recorded)
        self.documented = _moved(self.recorded, in_documents or {})
        self._in_events = _moved(self.recorded, in_events or {})

    @property
    def properties(self) -> dict[str, Schema]:
        """The fields as the OpenAPI document describes them."""
        return {name: field.schema for name, field in self.fields.items()}

    def shape(self, *, without: str = "", **further: Rule) -> Shape:
        """Return the fields of the resource in events: its recorded fields, and the fields in `further`, which are always present."""
        rules = {name: self.fields[name].rule for name in self._in_events if name != without}
        required = {name: rule for name, rule in rules.items() if self.fields[name].is_required}
        return Shape({**required, **further}, {name: rule for name, rule in rules.items() if name not in required})

    def part(self, *names: str, optional: tuple[str, ...] = ()) -> Shape:
        """Return the shape of these fields, with which events of other resources identify this resource."""
        return Shape({name: self.fields[name].rule for name in names}, {name: self.fields[name].rule for name in optional})


def values(read: Callable[[str], Any], names: Iterable[str], **made: Any) -> dict[str, Any]:
    """Return the JSON of a resource. The value of each name is that in `made`, otherwise the result of `read`. Omits empty fields."""
    found = {}
    for name in names:
        value = made[name] if name in made else read(name)
        if value not in _EMPTY:
            found[name] = wire_time(value) if isinstance(value, datetime) else value
    return found


def _moved(names: tuple[str, ...], behind: Mapping[str, str]) -> tuple[str, ...]:
    ordered = list(names)
    for name, other in behind.items():
        ordered.remove(name)
        ordered.insert(ordered.index(other) + 1, name)
    return tuple(ordered)
