"""Strict fields of request bodies: no value of a JSON body is converted, and unknown members are refused."""

from __future__ import annotations

import json
from typing import Any

from django.core.validators import EmailValidator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from foundation.api.bodies import FormMembers
from foundation.json_values import json_problem, text_problem

_LONGEST_NAME_SHOWN = 64


class Text(serializers.CharField):
    """Text as sent: never trimmed, never converted."""

    default_error_messages = {"invalid": "Expected type string", "blank": "String is too short (0 chars), minimum 1"}

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        """Check the type before the other rules: the framework would first convert a number to text and test whether the text is blank."""
        if data is not None and data is not serializers.empty:
            if not isinstance(data, str):
                self.fail("invalid")
            problem = text_problem(data)
            if problem:
                raise serializers.ValidationError(problem)
        return super().run_validation(data)


class Email(Text):
    """An email address."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=254, validators=[EmailValidator("Object didn't pass validation for format email")], **options)


@extend_schema_field(OpenApiTypes.BOOL)
class Switch(serializers.Field[bool, Any, bool, Any]):
    """`true` or `false`. A form body contains the value as one of these two words."""

    default_error_messages = {"invalid": "Expected type boolean"}

    def to_internal_value(self, data: Any) -> bool:
        if _is_form(self) and data in ("true", "false"):
            return bool(data == "true")
        if not isinstance(data, bool):
            self.fail("invalid")
        return data

    def to_representation(self, value: bool) -> bool:  # noqa: FBT001  (the framework's signature)
        return value


@extend_schema_field(OpenApiTypes.OBJECT)
class JsonObject(serializers.Field[dict[str, Any], Any, dict[str, Any], Any]):
    """An object with arbitrary members. `most` limits their number; with `texts`, each value must be text."""

    default_error_messages = {
        "invalid": "Expected type object",
        "too_many": "Too many properties defined, maximum {most}",
        "texts": "Expected string values",
    }

    def __init__(self, *, most: int | None = None, texts: bool = False, **options: Any) -> None:
        self._most = most
        self._texts = texts
        super().__init__(**options)

    @property
    def bounds(self) -> dict[str, Any]:
        """The schema keywords that describe these limits in the OpenAPI document."""
        most = {} if self._most is None else {"maxProperties": self._most}
        return most | ({"additionalProperties": {"type": "string"}} if self._texts else {})

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value = _structure(self, data)
        if not isinstance(value, dict):
            self.fail("invalid")
        problem = json_problem(value)
        if problem:
            raise serializers.ValidationError(problem)
        if self._most is not None and len(value) > self._most:
            self.fail("too_many", most=self._most)
        if self._texts and not all(isinstance(member, str) for member in value.values()):
            self.fail("texts")
        return value

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        return value


class ListOf(serializers.ListField):
    """A list. In a form body, a member that occurs once is a list of one item."""

    default_error_messages = {"not_a_list": "Expected type array", "min_length": "Array is too short, minimum {min_length}"}

    def to_internal_value(self, data: Any) -> list[Any]:
        value = _structure(self, data)
        found: list[Any] = super().to_internal_value([value] if _is_form(self) and not isinstance(value, list) else value)
        return found


class Closed(serializers.Serializer[Any]):
    """An object that may have only the declared members; any other member is refused."""

    default_error_messages = {"invalid": "Expected type object"}

    def to_internal_value(self, data: Any) -> Any:
        value = _structure(self, data)
        if isinstance(value, dict):
            unknown = next((name for name in value if name not in self.fields), None)
            if unknown is not None:
                raise serializers.ValidationError({_shown(unknown): ["Additional properties not allowed"]})
        return super().to_internal_value(value)


def _is_form(field: serializers.Field[Any, Any, Any, Any]) -> bool:
    return isinstance(getattr(field.root, "initial_data", None), FormMembers)


def _structure(field: serializers.Field[Any, Any, Any, Any], data: Any) -> Any:
    """Return the object or list if `data` is its JSON text in a form body (OpenAPI 3.0, "Encoding Object"), else `data` itself."""
    if not (_is_form(field) and isinstance(data, str) and data[:1] in ("{", "[")):
        return data
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data


def _shown(name: str) -> str:
    """Return the name of an unknown member, shortened and in ASCII, so that a response can contain it."""
    return name[:_LONGEST_NAME_SHOWN].encode("ascii", "replace").decode()
