"""What a value of event data may be: each rule checks a value, and says itself as JSON Schema. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

Schema = dict[str, Any]

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


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
    """One of a few texts."""

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
    """An object with exactly these fields."""

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
    """An object of one of several shapes, told apart by the text in one of its fields."""

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
