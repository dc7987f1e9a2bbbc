"""Computes the changes of a write per attribute, for the dry run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Attributes written by the server: a PUT without these attributes does not change them.
_SERVERS_OWN = frozenset({"id", "meta", "schemas", "groups"})


def changes(
    before: Mapping[str, Any] | None, resource: Mapping[str, Any], *, clears_rest: bool, removed: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Return path, old value and new value of each change; `clears_rest` tells that the write replaces the whole resource."""
    old, new = _flat(before or {}), _flat(resource)
    paths = dict.fromkeys([*new, *(old if clears_rest else ()), *(path for path in old if _is_removed(path, removed))])
    shown = [{"path": path, "before": old.get(path), "after": new.get(path)} for path in paths]
    return [change for change in shown if change["before"] != change["after"]]


def _is_removed(path: str, removed: Iterable[str]) -> bool:
    return any(path == name or name.startswith(f"{path}[") for name in removed)


def _flat(resource: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the leaf values by path; a list is one value, because it is written as a whole."""
    found: dict[str, Any] = {}
    for name, value in resource.items():
        if not prefix and name in _SERVERS_OWN:
            continue
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            # A colon separates a schema and its attribute; a point separates an attribute and its part (RFC 7644, 3.10).
            found |= _flat(value, f"{path}:" if path.startswith("urn:") and not prefix else f"{path}.")
        elif value not in (None, "", []):
            found[path] = value
    return found
