"""Reads values of a SCIM resource at paths of the mapping, and compares them with the values to be written. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from provisioning.mapping.paths import ScimPath, parse_path
from provisioning.mapping.table import MappedUser, MappingRow, replaces_list

Resource = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """One path whose value on the server differs from the mapped value; None means no value."""

    path: str
    here: Any
    there: Any


def filter_attribute(path: ScimPath) -> str:
    """Return the attribute for a filter.

    The filter does not contain the type of an element, so the caller checks the type in the answer.
    """
    name = f"{path.urn}:{path.attribute}" if path.urn else path.attribute
    return f"{name}.{path.leaf}" if path.leaf else name


def values_at(resource: Resource, path: ScimPath) -> list[Any]:
    """Return the values at a path: none, one, or one per element of a multi-valued attribute."""
    holder = _member(resource, path.urn) if path.urn else resource
    found = _member(holder, path.attribute)
    if not path.leaf:
        return [] if found is None else [found]
    elements = found if isinstance(found, list) else [found]
    chosen = [item for item in elements if not path.element_type or _type_of(item) == path.element_type.casefold()]
    return [value for item in chosen if (value := _member(item, path.leaf)) is not None]


def differences(mapped: MappedUser, found: Resource, table: Iterable[MappingRow], *, clears: bool) -> list[Difference]:
    """Compare the values of an update with the server's resource, for each row of the mapping table.

    With `clears`, the update removes unmapped values, as PUT does. A mapped list always replaces the whole list on
    the server. Attributes outside the table are not compared, because servers add attributes of their own.
    """
    rows = [row for row in table if row.enabled and row.when in ("both", "update")]
    paths = [parse_path(row.path) for row in rows]
    result = [difference for path in paths if (difference := _difference(path, mapped, found, clears=clears)) is not None]
    lists = {(path.urn, path.attribute) for path in paths if path.element_type and values_at(mapped.resource, path)}
    known = {(path.urn, path.attribute, path.element_type.casefold()) for path in paths}
    for urn, attribute in sorted(lists):
        elements = _member(_member(found, urn) if urn else found, attribute)
        # An update writes the whole list, so it removes elements that the mapping does not produce.
        beside = [item for item in elements if (urn, attribute, _type_of(item)) not in known] if isinstance(elements, list) else []
        result += [Difference(f"{attribute} of another type", None, item) for item in beside]
    return result


def _difference(path: ScimPath, mapped: MappedUser, found: Resource, *, clears: bool) -> Difference | None:
    here, there = values_at(mapped.resource, path), values_at(found, path)
    # `active` is optional, so a missing value does not mean inactive (RFC 7643, 4.1.1).
    if here == there or (path.attribute.casefold() == "active" and not path.urn and here == [True] and not there):
        return None
    is_cleared = clears or path.removal in mapped.removed or replaces_list(path, mapped.resource)
    if not here and not is_cleared:
        return None
    return Difference(path.text, _single(here), _single(there))


def _single(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else (values or None)


def _member(holder: Any, name: str) -> Any:
    """Return a member by its name, compared case-insensitively (RFC 7643, 2.1)."""
    if not isinstance(holder, Mapping):
        return None
    if name in holder:
        return holder[name]
    return next((value for key, value in holder.items() if isinstance(key, str) and key.casefold() == name.casefold()), None)


def _type_of(item: Any) -> str:
    kind = _member(item, "type")
    return kind.casefold() if isinstance(kind, str) else ""
