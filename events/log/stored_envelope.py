"""Reads values from the stored bytes of an event, for admin pages, because the table has no columns for these values. Pure."""

from __future__ import annotations

import json
from typing import Any


def envelope_of(body: bytes | memoryview) -> dict[str, Any]:
    """Return a stored envelope as a dictionary, which is empty if the bytes are invalid."""
    try:
        found = json.loads(bytes(body))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def who_of(envelope: dict[str, Any]) -> str:
    """Return the client that made the change; without a client, the IP address of the request; otherwise an empty string."""
    context = _member(_member(envelope, "data"), "context")
    client, request = _member(context, "client"), _member(context, "request")
    if client:
        return str(client.get("name") or client.get("id") or "")
    return f"a page, from {request['ip']}" if request.get("ip") else ""


def roots_in(envelope: dict[str, Any]) -> tuple[str, ...]:
    """Return the entities that are named in the object or the context of an event, as `<kind>:<id>`, without duplicates."""
    data = _member(envelope, "data")
    document = _member(data, "object")
    kind = str(envelope.get("type", "")).partition(".")[0]
    parts = [(kind, document), *((name, part) for name, part in document.items() if name in _PARTS)]
    parts.append(("connection", _member(data, "context").get("connection")))
    return tuple(dict.fromkeys(root for name, part in parts for root in _roots_of(name, part)))


# Members of an object that are entities, such as the user of a membership.
_PARTS = frozenset({"organization", "group", "user", "member", "role", "connection"})
_OWNERS = {"organization_id": "organization", "connection_id": "connection"}


def _roots_of(kind: str, part: Any) -> list[str]:
    """Return `<kind>:<id>` of an entity, and of the organization and connection to which it belongs.

    The `member_type` of a group member is `user`, or `connection` if the member is a nested group.
    """
    if not isinstance(part, dict):
        return []
    if kind == "member":
        kind = "user" if part.get("member_type") == "user" else "group"
    named = [(kind, part.get("user_id") or part.get("id")), *((owner, part.get(column)) for column, owner in _OWNERS.items())]
    return [f"{name}:{identifier}" for name, identifier in named if isinstance(identifier, str)]


def _member(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}
