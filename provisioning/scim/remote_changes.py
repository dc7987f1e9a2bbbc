"""What a write changes on the server, attribute by attribute: the dry run's difference. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# What the server writes itself: a PUT without them leaves them alone.
_SERVERS_OWN = frozenset({"id", "meta", "schemas", "groups"})


def changes(
    before: Mapping[str, Any] | None, resource: Mapping[str, Any], *, clears_rest: bool, removed: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Return path, value before and value after of everything that would change; `clears_rest` is a replacement of the whole."""
    old, new = _flat(before or {}), _flat(resource)
    paths = dict.fromkeys([*new, *(old if clears_rest else ()), *(path for path in old if _is_removed(path, removed))])
    shown = [{"path": path, "before": old.get(path), "after": new.get(path)} for path in paths]
    return [change for change in shown if change["before"] != change["after"]]


def _is_removed(path: str, removed: Iterable[str]) -> bool:
    return any(path == name or name.startswith(f"{path}[") for name in removed)


def _flat(resource: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the leaves by their paths; a list is one value, as it is written."""
    found: dict[str, Any] = {}
    for name, value in resource.items():
        if not prefix and name in _SERVERS_OWN:
            continue
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            # RFC 7644, 3.10: a colon joins a schema and its attribute, a point an attribute and its part.
            found |= _flat(value, f"{path}:" if path.startswith("urn:") and not prefix else f"{path}.")
        elif value not in (None, "", []):
            found[path] = value
    return found
