"""OpenAPI schemas of themes, built from the table of theme members."""

from __future__ import annotations

from collections.abc import Mapping

from authapi.looks.colors import PATTERN
from authapi.looks.theme import GROUPS, Member
from foundation.api.list_schemas import reference
from foundation.api.operations import SWITCH, TEXT, Schema

THEME = reference("BrandingTheme")


def _member(member: Member) -> Schema:
    words = {"description": member.effect or f"No effect: {member.idle}."}
    if member.kind == "color":
        return {**TEXT, "pattern": f"^{PATTERN}$", **words}
    if member.kind == "number":
        return {"type": "number", "minimum": member.least, "maximum": member.most, **words}
    if member.kind == "switch":
        return {**SWITCH, **words}
    return {**TEXT, "enum": list(member.choices), **words} if member.kind == "choice" else {**TEXT, **words}


def _group(inner: Mapping[str, Member | Mapping[str, Member]]) -> Schema:
    required = [name for name, found in inner.items() if not isinstance(found, Member) or found.is_required]
    properties = {name: _member(found) if isinstance(found, Member) else _group(found) for name, found in inner.items()}
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


COMPONENTS: dict[str, Schema] = {
    "BrandingTheme": {
        "type": "object",
        "required": ["themeId", "displayName", *GROUPS],
        "properties": {"themeId": TEXT, "displayName": TEXT, **{name: _group(inner) for name, inner in GROUPS.items()}},
    }
}
