"""Parses paths of SCIM attributes in a mapping table, and sets values at these paths. Pure.

Supported forms: `userName`, `name.givenName`, `emails[type eq "work"].value`, `emails.value`, and `<extension URN>:department`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from provisioning.mapping.attributes import Attribute, attribute_of
from provisioning.mapping.schemas import USER

_ATTRIBUTE = r"[A-Za-z][A-Za-z0-9_$-]*"
_PATH = re.compile(
    rf"(?:(?P<urn>urn:[A-Za-z0-9:._-]+):)?(?P<attribute>{_ATTRIBUTE})"
    rf'(?:\[type eq "(?P<type>[A-Za-z0-9_-]{{1,40}})"\])?(?:\.(?P<leaf>{_ATTRIBUTE}))?'
)
# Attributes written by the server or by the mapping itself.
_RESERVED = frozenset({"id", "meta", "schemas", "groups", "password"})
_CORE_URN = USER.casefold()


class PathRefused(ValueError):
    """The path cannot be used in a mapping."""


@dataclass(frozen=True)
class ScimPath:
    """The path of an attribute, of a sub-attribute, or of a sub-attribute of the list element that has a given type.

    An extension URN may precede the path.

    `described` is the attribute's definition in its schema, or None.
    """

    text: str
    attribute: str
    urn: str = ""
    element_type: str = ""
    leaf: str = ""
    described: Attribute | None = field(default=None, compare=False)

    @cached_property
    def part(self) -> Attribute | None:
        """The definition of the leaf in the schema, or None."""
        return self.described.part(self.leaf) if self.described is not None and self.leaf else None

    @cached_property
    def is_in_list(self) -> bool:
        """Whether the leaf is a sub-attribute of list elements."""
        is_list = self.described is not None and self.described.is_list
        return bool(self.leaf) and (bool(self.element_type) or is_list)

    @property
    def form(self) -> str:
        """Return the form in which a row sets the attribute: value, object or elements. A table must not mix forms of one attribute."""
        return "elements" if self.element_type else "object" if self.leaf else "value"

    @property
    def removal(self) -> str:
        """Return the path that removes the value. A list is removed as a whole, because some servers refuse value filters in paths."""
        whole = f"{self.urn}:{self.attribute}" if self.urn else self.attribute
        return whole if self.is_in_list or not self.leaf else f"{whole}.{self.leaf}"


@lru_cache(maxsize=4096)
def parse_path(text: str) -> ScimPath:
    """Parse a path. Raises `PathRefused` with a message for the administrator."""
    match = _PATH.fullmatch(text)
    if match is None:
        raise PathRefused(f'{text!r} is not a path such as userName, name.givenName or emails[type eq "work"].value.')
    urn, attribute, element_type, leaf = (match.group(name) or "" for name in ("urn", "attribute", "type", "leaf"))
    # Names and URNs are case-insensitive (RFC 7643, 2.1).
    urn = "" if urn.casefold() == _CORE_URN else urn
    if not urn and attribute.casefold() in _RESERVED:
        raise PathRefused(f"{attribute} cannot be mapped.")
    if element_type and not leaf:
        raise PathRefused(f"{text!r} must name a part of the element, such as .value.")
    return ScimPath(text, attribute, urn, element_type, leaf, attribute_of(urn, attribute))


def set_value(resource: dict[str, Any], path: ScimPath, value: Any) -> None:
    """Set `value` at `path`. For each type, an attribute has at most one element. The first element is primary.

    If the path is the path of a list without an element type, and the value is a list, each item becomes one element.
    """
    target = resource.setdefault(path.urn, {}) if path.urn else resource
    if path.is_in_list:
        elements = target.setdefault(path.attribute, [])
        if path.element_type:
            _set_leaf(elements, _element(elements, path.element_type), path.leaf, value)
        else:
            _set_leaves(elements, path.leaf, value if isinstance(value, list) else [value])
    elif path.leaf:
        target.setdefault(path.attribute, {})[path.leaf] = value
    else:
        target[path.attribute] = value


def drop_empty_elements(resource: dict[str, Any]) -> None:
    """Remove list elements without values.

    Call this when all rows of the mapping are set. Until then, `set_value` creates an empty element for a null value, so that the values
    of several rows keep the same index.
    """
    for value in resource.values():
        if isinstance(value, list) and {} in value:
            value[:] = [element for element in value if element != {}]


def _set_leaves(elements: list[dict[str, Any]], leaf: str, values: list[Any]) -> None:
    for number, value in enumerate(values):
        if number == len(elements):
            elements.append({})
        if value is not None:
            _set_leaf(elements, elements[number], leaf, value)


def _set_leaf(elements: list[dict[str, Any]], element: dict[str, Any], leaf: str, value: Any) -> None:
    # At most one element is primary (RFC 7643, 2.4): by default the first element; a mapping row can set `primary` on another element.
    if leaf.casefold() == "primary" and value is True:
        for other in elements:
            if other.get("primary"):
                other["primary"] = False
    element[leaf] = value


def _element(elements: list[dict[str, Any]], element_type: str) -> dict[str, Any]:
    for element in elements:
        if element["type"] == element_type:
            return element
    made: dict[str, Any] = {"type": element_type, "primary": not elements}
    elements.append(made)
    return made
