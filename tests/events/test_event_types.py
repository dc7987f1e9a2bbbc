"""Every event type of the document's table occurs, with exactly the payload of its golden file."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from events.record.catalogue import DOCUMENT_KINDS, EVENT_TYPES
from events.record.schemas import SCHEMAS, check_data
from foundation.change_context import ChangeContext, ChangingClient, change_context
from foundation.shapes import SchemaViolation
from identity.models import Tenant
from identity.services import connections, groups, memberships, organizations, roles, users
from tests.events.log_reading import folded, numbered, tables
from tests.factories.event_story import tell_every_type

GOLDEN = Path(__file__).parent / "golden"
REPLACED = [
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "<time>"),
    (re.compile(r"(evt|est|con|org|rol|grp)_[A-Za-z0-9]+"), r"<\1>"),
    (re.compile(r"t-[0-9a-f]{12}"), "<tenant>"),
]


@pytest.fixture
def events(tenant: Tenant) -> dict[str, dict[str, Any]]:
    """One event of each type, recorded by the services."""
    tell_every_type(tenant)
    recorded = numbered(tenant.pk)
    assert folded(recorded) == tables(tenant.pk)
    return {event["type"]: event for event in recorded}


def test_every_type_of_the_document_occurs(events: dict[str, dict[str, Any]]) -> None:
    assert set(events) == set(EVENT_TYPES)
    assert len(EVENT_TYPES) == 25


def test_every_payload_matches_its_golden_file(events: dict[str, dict[str, Any]]) -> None:
    differing = []
    for event_type, event in events.items():
        text = json.dumps(event, indent=2)
        for pattern, replacement in REPLACED:
            text = pattern.sub(replacement, text)
        file = GOLDEN / f"{event_type}.json"
        if os.environ.get("UPDATE_GOLDEN"):
            file.write_text(text + "\n")
        if file.read_text() != text + "\n":
            differing.append(event_type)
    assert differing == []


def test_the_catalogue_names_every_type_once() -> None:
    named = [event_type for kind in DOCUMENT_KINDS for event_type in (kind.created, kind.updated, kind.deleted) if event_type]
    assert sorted(named) == sorted(EVENT_TYPES)
    assert set(SCHEMAS) == set(EVENT_TYPES)


def test_a_field_that_is_not_in_the_schema_is_refused(events: dict[str, dict[str, Any]]) -> None:
    for event_type, event in events.items():
        data = event["data"]
        with pytest.raises(SchemaViolation, match="surplus"):
            check_data(event_type, {**data, "object": {**data["object"], "surplus": 1}})
        with pytest.raises(SchemaViolation, match="missing"):
            check_data(event_type, {"context": data["context"]})


def test_an_event_contains_the_client_of_the_change_with_its_metadata(tenant: Tenant) -> None:
    for metadata in ({"tier": "gold"}, {}):
        with change_context(ChangeContext(client=ChangingClient("abc", "crm", metadata))):
            connections.create_connection(tenant_id=tenant.pk, name=f"people-{len(metadata)}", strategy="database")
        assert numbered(tenant.pk)[-1]["data"]["context"]["client"] == {"id": "abc", "name": "crm", "metadata": metadata}


def test_an_event_whose_client_lacks_the_member_metadata_is_refused(events: dict[str, dict[str, Any]]) -> None:
    for event_type, event in events.items():
        context = {**event["data"]["context"], "client": {"id": "abc", "name": "crm"}}
        with pytest.raises(SchemaViolation, match=r"client\.metadata: missing"):
            check_data(event_type, {**event["data"], "context": context})


def test_relations_are_deleted_before_their_targets(tenant: Tenant) -> None:
    here: dict[str, Any] = {"tenant_id": tenant.pk}
    people = connections.create_connection(**here, name="people", strategy="database")
    ada = users.create_user(**here, connection=people, name="Ada")
    role = roles.create_role(**here, name="editor")
    organization = organizations.create_organization(**here, name="acme")
    group = groups.create_group(**here, name="engineers")
    memberships.add_members(**here, organization_id=organization.pk, user_ids=[ada.user_id])
    memberships.assign_member_roles(**here, organization_id=organization.pk, user_id=ada.user_id, role_ids=[role.pk])
    groups.add_group_members(**here, group_id=group.pk, user_ids=[ada.user_id])
    before = len(numbered(tenant.pk))
    connections.delete_connection(**here, connection_id=people.pk)
    assert [event["type"] for event in numbered(tenant.pk)[before:]] == [
        "organization.member.role.deleted",
        "organization.member.deleted",
        "group.member.deleted",
        "user.deleted",
        "connection.deleted",
    ]
