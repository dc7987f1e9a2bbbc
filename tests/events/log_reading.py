"""What tests read back: the numbered log of a tenant as parsed envelopes, and what a consumer would make of it."""

from __future__ import annotations

import json
from typing import Any

from events.catalogue import DOCUMENT_KINDS
from events.models import LogEntry
from events.numbering import number_tenant
from identity.documents import connection_document, user_document
from identity.models import Connection, User

SILENT = {kind.name: kind.silent for kind in DOCUMENT_KINDS}


def numbered(tenant_id: str) -> list[dict[str, Any]]:
    """Number what waits and return the tenant's events in order; positions are checked to be dense."""
    number_tenant(tenant_id)
    rows = list(LogEntry.objects.filter(tenant_id=tenant_id).select_related("event").order_by("position"))
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    return [json.loads(bytes(row.event.body)) for row in rows]


def types(tenant_id: str) -> list[str]:
    return [event["type"] for event in numbered(tenant_id)]


def folded(events: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Apply the events in order, as a consumer that keeps a copy would; checks each event's place in the story."""
    state: dict[str, dict[str, Any]] = {}
    for event in events:
        noun, operation = event["type"].split(".")
        shown = event["data"]["object"]
        key = f"{noun}:{shown['user_id' if noun == 'user' else 'id']}"
        if operation == "created":
            assert key not in state, f"{key} was created twice"
            state[key] = shown
        elif operation == "updated":
            assert _visible(noun, event["data"]["previous_object"]) == _visible(noun, state[key])
            state[key] = shown
        else:
            before = {name: value for name, value in shown.items() if name != "deleted_at"}
            assert _visible(noun, before) == _visible(noun, state.pop(key))
    return {key: _visible(key.partition(":")[0], value) for key, value in state.items()}


def tables(tenant_id: str) -> dict[str, dict[str, Any]]:
    """Return the documents that the tables hold now."""
    state = {}
    for user in User.objects.of(tenant_id).select_related("connection"):
        state[f"user:{user.user_id}"] = _visible("user", user_document(user))
    for row in Connection.objects.of(tenant_id):
        state[f"connection:{row.id}"] = _visible("connection", connection_document(row))
    return state


def _visible(noun: str, document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in SILENT[noun]}
