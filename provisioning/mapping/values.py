"""Converts results of expressions to the type of their attribute, or explains why a conversion is impossible. Pure.

A text is never converted to a boolean, because its meaning is unknown, and servers may treat the text "False" as true. A number
becomes a text if the schema requires a text. Values of attributes without a schema keep their JSON type.
"""

from __future__ import annotations

import math
from typing import Any

from provisioning.mapping.attributes import Attribute
from provisioning.mapping.paths import ScimPath

_DEEPEST = 16
_EXPECTED = {
    "string": "a text is expected",
    "boolean": "true or false is expected",
    "reference": "a text with an address is expected",
    "binary": "a text in base64 is expected",
    "complex": "an object is expected",
}


class Fitting:
    """Converts the values of one user; `problems` collects a path and a reason for each omitted value."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []

    def at(self, path: ScimPath, value: Any) -> Any:
        """Return the value to set at the path, converted to the type of its attribute; None if there is nothing to send.

        The result is a list in two cases: if the path names a whole list (`emails`), or if the value is a list and the path names a part
        of the elements but no type (`emails.value`, unlike `emails[type eq "work"].value`).
        """
        described = path.part if path.leaf else path.described
        if type(value) is str and described is not None and described.kind == "string":
            # Fast path for the most frequent case.
            return value if value.strip() else None
        if path.is_in_list and not path.element_type and isinstance(value, list):
            items = [self._fitted(path.text, item, described) for item in value]
            return items if any(item is not None for item in items) else None
        if described is not None and described.is_list and not path.leaf:
            return self._elements(path.text, value, described)
        return self._fitted(path.text, value, described)

    def _fitted(self, place: str, value: Any, described: Attribute | None) -> Any:
        if is_empty(value):
            return None
        if described is None:
            return self._kept(place, value)
        if described.kind == "complex":
            return self._object(place, value, described) if isinstance(value, dict) else self._refuse(place, value, described)
        if described.kind == "boolean":
            return value if isinstance(value, bool) else self._refuse(place, value, described)
        if isinstance(value, str):
            return value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return str(value) if is_number and described.kind == "string" else self._refuse(place, value, described)

    def _elements(self, place: str, value: Any, described: Attribute) -> list[dict[str, Any]] | None:
        """Return the elements of a whole list. For an item that is not an object, the element has the item as its `value`."""
        items = value if isinstance(value, list) else [value]
        found = [element for item in items if (element := self._element(place, item, described))]
        for element in found[1:]:
            # At most one element of an attribute is primary (RFC 7643, 2.4).
            if element.get("primary") and any(other.get("primary") for other in found[: found.index(element)]):
                element["primary"] = False
        return found or None

    def _element(self, place: str, item: Any, described: Attribute) -> dict[str, Any] | None:
        if is_empty(item):
            return None
        if isinstance(item, dict):
            return self._object(place, item, described)
        value = described.part("value")
        if value is None:
            self._refuse(place, item, described)
            return None
        fitted = self._fitted(place, item, value)
        return None if fitted is None else {"value": fitted}

    def _object(self, place: str, value: dict[str, Any], described: Attribute) -> dict[str, Any] | None:
        found = {}
        for name, item in value.items():
            part = described.part(str(name))
            if part is None:
                self._say(place, f"the attribute has no part {str(name)[:64]!r} in RFC 7643; its parts are {', '.join(described.parts)}")
            elif (fitted := self._fitted(f"{place}.{name}", item, part)) is not None:
                found[name] = fitted
        return found or None

    def _kept(self, place: str, value: Any, depth: int = 0) -> Any:
        """Return a value with its JSON type and without empty members: null means unassigned (RFC 7643, 2.5)."""
        if isinstance(value, int | float) and not _fits_json(value):
            return self._say(place, "the number is not finite, or has more than 64 bits")
        if depth >= _DEEPEST:
            return self._say(place, f"the value is nested more than {_DEEPEST} deep")
        if isinstance(value, dict):
            members = {str(name): self._kept(place, item, depth + 1) for name, item in value.items() if not is_empty(item)}
            return {name: item for name, item in members.items() if item is not None} or None
        if isinstance(value, list):
            return [
                item for item in (self._kept(place, item, depth + 1) for item in value if not is_empty(item)) if item is not None
            ] or None
        return value

    def _refuse(self, place: str, value: Any, described: Attribute) -> None:
        expected = _EXPECTED[described.kind]
        if described.kind == "complex":
            expected = f"{expected} with {', '.join(described.parts)}"
        self._say(place, f"{expected}, not {_named(value)}")

    def _say(self, place: str, text: str) -> None:
        self.problems.append((place, text))


def is_empty(value: Any) -> bool:
    """Tell whether the value is empty: null, a blank text, or a list or object without members."""
    return value is None or (isinstance(value, str) and not value.strip()) or (isinstance(value, list | dict) and not value)


def _fits_json(number: float) -> bool:
    return math.isfinite(number) if type(number) is float else -(2**63) <= number < 2**64


def _named(value: Any) -> str:
    """Return the type of a value in words, for messages. The value itself is personal data, which messages must not contain."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return "a text" if isinstance(value, str) else "a number"
