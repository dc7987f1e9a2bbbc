"""Bodies of PATCH requests. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from provisioning.mapping.schemas import PATCH_OP


def whole_user(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return one `replace` without a path; its value is the user (spec, "Requests made", rule 1)."""
    return _message([{"op": "replace", "value": dict(resource)}])


def per_attribute(resource: Mapping[str, Any], removed: Iterable[str] = ()) -> dict[str, Any]:
    """Return one `replace` per attribute, and one `remove` per path in `removed`, for servers that require paths.

    Multi-valued attributes are sent whole, because some servers refuse value filters in paths. Paths of extension attributes
    start with the URN, and each sub-attribute in an extension has its own path (spec, "Requests made", rule 2).
    """
    operations: list[dict[str, Any]] = []
    for name, value in resource.items():
        if name == "schemas":
            continue
        if name.startswith("urn:"):
            operations += [_replace(path, leaf) for path, leaf in _leaves(name, value)]
        else:
            operations.append(_replace(name, value))
    operations += [{"op": "remove", "path": path} for path in removed]
    return _message(operations)


def _leaves(urn: str, extension: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in extension.items():
        if isinstance(value, Mapping):
            yield from ((f"{urn}:{name}.{part}", leaf) for part, leaf in value.items())
        else:
            yield f"{urn}:{name}", value


def _replace(path: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def _message(operations: list[dict[str, Any]]) -> dict[str, Any]:
    return {"schemas": [PATCH_OP], "Operations": operations}
