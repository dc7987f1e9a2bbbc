"""Facts about a stored event that only its bytes contain, for admin pages. Pure."""

from __future__ import annotations

import json
from typing import Any


def envelope_of(body: bytes | memoryview) -> dict[str, Any]:
    """Return a stored envelope as a document, which is empty if the bytes are invalid."""
    try:
        found = json.loads(bytes(body))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def who_of(envelope: dict[str, Any]) -> str:
    """Return the client that made the change, otherwise the IP address of the request, otherwise an empty string."""
    context = _member(_member(envelope, "data"), "context")
    client, request = _member(context, "client"), _member(context, "request")
    if client:
        return str(client.get("name") or client.get("id") or "")
    return f"a page, from {request['ip']}" if request.get("ip") else ""


def _member(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}
