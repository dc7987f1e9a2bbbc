"""Checks a mapping table when it is saved: paths and constants must match the schema. Pure.

Tables that were saved earlier are not checked again; a run sends all valid values and logs the values that it omits.
"""

from __future__ import annotations

from collections.abc import Iterable

from foundation.expressions.language import compile_expression, is_constant
from provisioning.mapping.attributes import is_described
from provisioning.mapping.paths import ScimPath, parse_path
from provisioning.mapping.table import MappingRefused, MappingRow, TableProblem
from provisioning.mapping.values import Fitting


def check_sendable(table: Iterable[MappingRow]) -> None:
    """Raise `MappingRefused` if the value of a row cannot be sent for any user, or if two rows set the same attribute."""
    problems: list[TableProblem] = []
    seen: set[ScimPath] = set()
    for index, row in enumerate(table):
        path = parse_path(row.path)
        place = ScimPath("", path.attribute.casefold(), path.urn.casefold(), path.element_type, path.leaf.casefold())
        texts = [("path", text) for text in _impossible(path)] or [("source", text) for text in _unfit(path, row.source)]
        texts += [("path", "Each attribute may occur once in the table; names are case-insensitive.")] * (place in seen)
        problems += [TableProblem(text, index, name) for name, text in texts]
        seen.add(place)
    if problems:
        raise MappingRefused(problems)


def undescribed(table: Iterable[MappingRow]) -> list[str]:
    """Return a warning for each enabled row with an attribute that its schema does not define. A run sends the attribute anyway."""
    rows = [(row, parse_path(row.path)) for row in table if row.enabled]
    return [
        f"RFC 7643 has no attribute {row.path}: the value keeps its JSON type, and most servers ignore or refuse the attribute."
        for row, path in rows
        if path.described is None and is_described(path.urn)
    ]


def _impossible(path: ScimPath) -> list[str]:
    described = path.described
    if described is None:
        return []
    if path.leaf and described.kind != "complex":
        return [f"{path.attribute} has no parts: map {path.attribute} itself."]
    if path.element_type and not described.is_list:
        return [f"{path.attribute} is not a list and has no elements with a type."]
    if path.leaf and path.part is None:
        return [f"{path.attribute} has no part {path.leaf}; it has {', '.join(described.parts)}."]
    return []


def _unfit(path: ScimPath, source: str) -> list[str]:
    """Return the reason why a constant cannot be sent. Only constants are checked: other expressions need the data of a user."""
    if not is_constant(source):
        return []
    fitting = Fitting()
    fitting.at(path, compile_expression(source)({}))
    return [f"This constant cannot be sent: {text}." for _, text in fitting.problems]
