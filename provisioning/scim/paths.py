"""Paths of SCIM attributes as a mapping table writes them, and setting a value at one. Pure.

`userName`, `name.givenName`, `emails[type eq "work"].value`, and `<extension URN>:department`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from provisioning.scim.schemas import USER

_ATTRIBUTE = r"[A-Za-z][A-Za-z0-9_$-]*"
_PATH = re.compile(
    rf"(?:(?P<urn>urn:[A-Za-z0-9:._-]+):)?(?P<attribute>{_ATTRIBUTE})"
    rf'(?:\[type eq "(?P<type>[A-Za-z0-9_-]{{1,40}})"\])?(?:\.(?P<leaf>{_ATTRIBUTE}))?'
)
# Written by the server or by the mapping itself.
_RESERVED = frozenset({"id", "meta", "schemas", "groups", "password"})


class PathRefused(ValueError):
    """The path is not one that a mapping may set."""


@dataclass(frozen=True)
class ScimPath:
    """One attribute: in an extension, as a leaf of a complex attribute, or in the element of a type."""

    text: str
    attribute: str
    urn: str = ""
    element_type: str = ""
    leaf: str = ""

    @property
    def is_boolean(self) -> bool:
        return self.text == "active"

    @property
    def form(self) -> str:
        """Return what the attribute is made of: a value, an object or elements. One table may use one form of it."""
        return "elements" if self.element_type else "object" if self.leaf else "value"


@lru_cache(maxsize=4096)
def parse_path(text: str) -> ScimPath:
    """Read a path; raise `PathRefused` with a sentence."""
    match = _PATH.fullmatch(text)
    if match is None:
        raise PathRefused(f'{text!r} is no path such as userName, name.givenName or emails[type eq "work"].value.')
    urn, attribute, element_type, leaf = (match.group(name) or "" for name in ("urn", "attribute", "type", "leaf"))
    if not urn and attribute in _RESERVED:
        raise PathRefused(f"{attribute} cannot be mapped.")
    if element_type and not leaf:
        raise PathRefused(f"{text!r} needs the part of the element that is set, such as .value.")
    return ScimPath(text, attribute, "" if urn == USER else urn, element_type, leaf)


def set_value(resource: dict[str, Any], path: ScimPath, value: Any) -> None:
    """Put `value` where `path` says. An element of a type is made once per attribute and is primary when it is the first."""
    target = resource.setdefault(path.urn, {}) if path.urn else resource
    if path.element_type:
        _element(target.setdefault(path.attribute, []), path.element_type)[path.leaf] = value
    elif path.leaf:
        target.setdefault(path.attribute, {})[path.leaf] = value
    else:
        target[path.attribute] = value


def _element(elements: list[dict[str, Any]], element_type: str) -> dict[str, Any]:
    for element in elements:
        if element["type"] == element_type:
            return element
    # RFC 7643, 2.4: at most one element of an attribute is primary.
    made: dict[str, Any] = {"type": element_type, "primary": not elements}
    elements.append(made)
    return made
