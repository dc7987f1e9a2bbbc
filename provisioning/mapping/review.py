"""What a mapping table says that cannot be sent, seen when it is saved: the schema against paths and constants. Pure.

A table that was saved earlier is not judged by this: its rows run as far as they can, and a run says what it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable

from provisioning.mapping.attributes import is_described
from provisioning.mapping.expressions import compile_expression, is_constant
from provisioning.mapping.paths import ScimPath, parse_path
from provisioning.mapping.table import MappingRefused, MappingRow, TableProblem
from provisioning.mapping.values import Fitting


def check_sendable(table: Iterable[MappingRow]) -> None:
    """Raise `MappingRefused` for rows that can send no value for any user, and for two rows of one attribute."""
    problems: list[TableProblem] = []
    seen: set[ScimPath] = set()
    for index, row in enumerate(table):
        path = parse_path(row.path)
        place = ScimPath("", path.attribute.casefold(), path.urn.casefold(), path.element_type, path.leaf.casefold())
        texts = [("path", text) for text in _impossible(path)] or [("source", text) for text in _unfit(path, row.source)]
        texts += [("path", "Each attribute may stand in the table once; names are compared without regard to case.")] * (place in seen)
        problems += [TableProblem(text, index, name) for name, text in texts]
        seen.add(place)
    if problems:
        raise MappingRefused(problems)


def undescribed(table: Iterable[MappingRow]) -> list[str]:
    """Return a sentence for each enabled row whose attribute its schema does not have: it is sent, and may be a slip."""
    rows = [(row, parse_path(row.path)) for row in table if row.enabled]
    return [
        f"RFC 7643 has no attribute {row.path}: it is sent with the JSON type of its value, and most servers ignore or refuse it."
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
        return [f"{path.attribute} is no list and has no element of a type."]
    if path.leaf and path.part is None:
        return [f"{path.attribute} has no part {path.leaf}; it has {', '.join(described.parts)}."]
    return []


def _unfit(path: ScimPath, source: str) -> list[str]:
    """Return why a constant cannot be sent; what else an expression yields is seen with a user only."""
    if not is_constant(source):
        return []
    fitting = Fitting()
    fitting.at(path, compile_expression(source)({}))
    return [f"This constant cannot be sent: {text}." for _, text in fitting.problems]
