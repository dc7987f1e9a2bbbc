"""Request bodies for themes, built from the table of theme members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from authapi.looks.addresses import LONGEST_ADDRESS
from authapi.looks.colors import PATTERN
from authapi.looks.theme import GROUPS, Member, members
from authapi.services.branding import LONGEST_NAME
from foundation.api.fields import Closed, Switch, Text

# Members whose value may be the URL of an uploaded picture.
PICTURES = tuple(path for path, member in members() if member.kind == "picture")
_COLOR = RegexValidator(rf"\A(?:{PATTERN})\Z", f"String does not match pattern ^{PATTERN}$")
_NAME = RegexValidator(r"\A[^<>]*\Z", "String does not match pattern ^[^<>]*$")


@extend_schema_field({"type": "number"})
class Number(serializers.Field[float, Any, float, Any]):
    """A JSON number. `services.branding` checks its bounds and names the member in the error."""

    default_error_messages = {"invalid": "Expected type number"}

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        return data

    def to_representation(self, value: float) -> float:
        return value


def _field(member: Member) -> serializers.Field[Any, Any, Any, Any]:
    required = member.is_required
    if member.kind == "color":
        return Text(required=required, validators=[_COLOR])
    if member.kind == "number":
        return Number(required=required)
    if member.kind == "switch":
        return Switch(required=required)
    if member.kind == "choice":
        return serializers.ChoiceField(choices=list(member.choices), required=required)
    return Text(required=required, allow_blank=True, max_length=LONGEST_ADDRESS)


def _group(name: str, inner: Mapping[str, Member | Mapping[str, Member]]) -> type[Closed]:
    """Return the body of a group with its nested groups. The body accepts no unknown members."""
    title = "".join(word.capitalize() for word in name.split("_"))
    fields = {part: _field(found) if isinstance(found, Member) else _group(f"{name}_{part}", found)() for part, found in inner.items()}
    return type(f"Theme{title}", (Closed,), fields)


_BODIES = {name: _group(name, inner) for name, inner in GROUPS.items()}


def _theme(title: str, doc: str, *, is_whole: bool) -> type[Closed]:
    groups: dict[str, Any] = {name: body(required=is_whole) for name, body in _BODIES.items()}
    name = Text(required=False, allow_blank=True, max_length=LONGEST_NAME, validators=[_NAME])
    return type(title, (Closed,), {"displayName": name, **groups, "__doc__": doc})


ThemeToCreate = _theme("ThemeToCreate", "A complete theme.", is_whole=True)
ThemeToChange = _theme("ThemeToChange", "Groups of a theme. Each given group replaces the stored group.", is_whole=False)
