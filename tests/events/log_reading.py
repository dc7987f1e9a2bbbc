"""Reads logs for tests: the numbered log of a tenant as parsed envelopes, and a consumer's copy of the documents."""

from __future__ import annotations

import json
from typing import Any

from django.apps import apps
from django.db import transaction

from events.log.numbering import number_tenant
from events.models import LogEntry
from events.record.catalogue import DOCUMENT_KINDS, DocumentKind
from events.record.documents import document_of
from events.record.snapshots import read_snapshots

BY_NAME = {kind.name: kind for kind in DOCUMENT_KINDS}
BY_TYPE = {event_type: kind for kind in DOCUMENT_KINDS for event_type in (kind.created, kind.updated, kind.deleted) if event_type}


def numbered(tenant_id: str) -> list[dict[str, Any]]:
    """Number waiting events and return the tenant's events in order, after a check that positions are dense."""
    number_tenant(tenant_id)
    rows = list(LogEntry.objects.filter(tenant_id=tenant_id).select_related("event").order_by("position"))
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    return [json.loads(bytes(row.event.body)) for row in rows]


def types(tenant_id: str) -> list[str]:
    return [event["type"] for event in numbered(tenant_id)]


def folded(events: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Apply the events in order, like a consumer that keeps a copy. Check that each event is applicable to the copy."""
    state: dict[str, dict[str, Any]] = {}
    for event in events:
        kind = BY_TYPE[event["type"]]
        shown = event["data"]["object"]
        key = _key(kind, shown)
        if event["type"] == kind.created:
            assert key not in state, f"{key} was created twice"
            assert all(parent in state for parent in _parents(kind, shown)), f"{key} was created before the objects that it refers to"
            assert _name_of_organization(shown, state) == shown.get("organization", {}).get("name"), (
                f"{key} has a wrong name of its organization"
            )
            state[key] = shown
        elif event["type"] == kind.updated:
            assert _visible(kind, event["data"]["previous_object"]) == _visible(kind, state[key])
            state[key] = shown
        else:
            before = _visible(kind, state.pop(key))
            assert not _still_used(key, state), f"{key} was deleted before objects that refer to it"
            assert {name: before[name] for name in _visible(kind, shown) if name in before and name != "role"} == {
                name: value for name, value in _visible(kind, shown).items() if name in before and name != "role"
            }
    return {key: _visible(BY_NAME[key.split(":")[0]], value) for key, value in state.items()}


def tables(tenant_id: str) -> dict[str, dict[str, Any]]:
    """Return the current documents of the tables."""
    state = {}
    with transaction.atomic():
        for kind in DOCUMENT_KINDS:
            for snapshot in read_snapshots(kind, _keys(kind, tenant_id)).values():
                document = document_of(kind, snapshot.now, snapshot.references)
                assert document is not None
                state[_key(kind, document)] = _visible(kind, document)
    return state


def _keys(kind: DocumentKind, tenant_id: str) -> list[str]:
    model = next(model for model in apps.get_models() if model._meta.db_table == kind.table)
    return [str(key) for key in model._default_manager.filter(tenant_id=tenant_id).values_list("pk", flat=True)]


def _key(kind: DocumentKind, document: dict[str, Any]) -> str:
    values = []
    for path in kind.identity:
        value: Any = document
        for name in path.split("."):
            value = value[name]
        values.append(value)
    return ":".join([kind.name, *values])


def _parents(kind: DocumentKind, document: dict[str, Any]) -> list[str]:
    found = [f"{name}:{document[name]['id']}" for name in ("organization", "group", "connection") if isinstance(document.get(name), dict)]
    found += [f"user:{document['user']['user_id']}"] if "user" in document and kind.name != "user" else []
    found += [f"{name}:{document[f'{name}_id']}" for name in ("organization", "connection") if f"{name}_id" in document]
    return found


def _still_used(key: str, state: dict[str, dict[str, Any]]) -> bool:
    return any(key in _parents(BY_NAME[other.split(":")[0]], document) for other, document in state.items())


def _name_of_organization(document: dict[str, Any], state: dict[str, dict[str, Any]]) -> str | None:
    """Return the name of the organization in the consumer's copy, or None if the document contains only the id of its organization."""
    named = document.get("organization", {})
    return state[f"organization:{named['id']}"]["name"] if "name" in named else None


def _visible(kind: DocumentKind, document: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a document that its own events keep up to date.

    The name of its organization is left out, because only `organization.updated` reports a new name.
    """
    shown = {name: value for name, value in document.items() if name not in kind.silent and name != "deleted_at"}
    return shown | {"organization": {"id": shown["organization"]["id"]}} if "organization" in shown else shown
