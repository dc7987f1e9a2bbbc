"""The events that each call of the management interface records, and their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from identity.models import Connection, Tenant, User
from tests.events.log_reading import folded, numbered, tables, types
from tests.factories.identity import make_connection, make_user
from tests.factories.organizations import make_group, make_organization, make_role
from tests.management import Answer, Management, segment

Recorded = Callable[[Answer], list[str]]


@pytest.fixture
def recorded(tenant: Tenant) -> Recorded:
    """Return a function that checks that a response is successful, and returns the types of the events since the previous check."""
    seen = [0]

    def since(answer: Answer) -> list[str]:
        assert answer.status < 300, answer.body
        every = types(tenant.pk)
        new = every[seen[0] :]
        seen[0] = len(every)
        return new

    return since


@pytest.fixture
def story(api: Management, tenant: Tenant, ada: User, database_connection: Connection) -> dict[str, Any]:
    """Return the ids of the created rows.

    Ada is a member of an organization and of a group, and has a role in both. Another group contains her group.
    """
    directory = make_connection(tenant_id=tenant.pk, strategy="samlp", options={"signInEndpoint": "https://idp.example.test"})
    organization = make_organization(tenant, "acme")
    group = make_group(tenant, "inner", type="connection", connection_id=directory.pk)
    outer = make_group(tenant, "outer")
    own = make_group(tenant, "own", type="organization", organization_id=organization.pk)
    role = make_role(tenant)
    place = f"organizations/{organization.pk}"
    api.post(f"{place}/enabled_connections", {"connection_id": database_connection.pk})
    api.post(f"{place}/members", {"members": [ada.user_id]})
    api.post(f"{place}/members/{segment(ada.user_id)}/roles", {"roles": [role.pk]})
    api.post(f"{place}/groups/{group.pk}/roles", {"roles": [role.pk]})
    api.post(f"groups/{group.pk}/members", {"members": [ada.user_id]})
    api.post(f"groups/{outer.pk}/members", {"members": [group.pk]})
    api.post(f"groups/{group.pk}/roles", {"roles": [role.pk]})
    return {
        "organization": organization.pk,
        "group": group.pk,
        "outer": outer.pk,
        "own": own.pk,
        "role": role.pk,
        "directory": directory.pk,
        "user": segment(ada.user_id),
    }


def judged(tenant: Tenant) -> None:
    """Check that applying the events in order gives the rows of the tables, and that each event follows the events that it depends on."""
    assert folded(numbered(tenant.pk)) == tables(tenant.pk)


def test_a_request_about_relations_records_one_event_for_each_pair_of_resources(
    api: Management, tenant: Tenant, ada: User, database_connection: Connection, recorded: Recorded
) -> None:
    bob = make_user(connection=database_connection)
    roles = [make_role(tenant).pk for _ in range(2)]
    group = api.post("groups", {"name": "g", "type": "tenant"})
    recorded(api.get("roles"))
    body = {"name": "acme", "enabled_connections": [{"connection_id": database_connection.pk}]}
    organization = api.post("organizations", body)
    assert recorded(organization) == ["organization.created", "organization.connection.added"]
    place, members = f"organizations/{organization.json['id']}", {"members": [ada.user_id, bob.user_id]}
    assert recorded(api.patch(place, {"display_name": "Acme"})) == ["organization.updated"]
    one = f"{place}/connections/{database_connection.pk}"
    assert recorded(api.patch(one, {"is_enabled": False})) == ["organization.connection.updated"]
    assert recorded(api.patch(one, {"is_enabled": False})) == []
    assert recorded(api.patch(one, {"organization_connection_name": "staff"})) == []
    assert recorded(api.delete(one)) == ["organization.connection.removed"]
    assert recorded(api.delete(one)) == []
    assert recorded(api.post(f"{place}/members", members)) == ["organization.member.added"] * 2
    assert recorded(api.post(f"{place}/members", members)) == []
    mine = f"{place}/members/{segment(ada.user_id)}/roles"
    assert recorded(api.post(mine, {"roles": roles})) == ["organization.member.role.assigned"] * 2
    assert recorded(api.post(mine, {"roles": roles})) == []
    assert recorded(api.delete(mine, {"roles": roles[:1]})) == ["organization.member.role.deleted"]
    assert recorded(api.delete(f"{place}/members", members)) == [
        "organization.member.role.deleted",
        "organization.member.deleted",
        "organization.member.deleted",
    ]
    path = f"groups/{group.json['id']}"
    assert recorded(api.post(f"{path}/members", members)) == ["group.member.added"] * 2
    assert recorded(api.delete(f"{path}/members", members)) == ["group.member.deleted"] * 2
    assert recorded(api.post(f"{path}/roles", {"roles": roles})) == ["group.role.assigned"] * 2
    assert recorded(api.delete(f"roles/{roles[0]}/groups", {"groups": [group.json["id"]]})) == ["group.role.deleted"]
    assert recorded(api.post(f"roles/{roles[0]}/groups", {"groups": [group.json["id"]]})) == ["group.role.assigned"]
    inside = f"{place}/{path}/roles"
    assert recorded(api.post(inside, {"roles": roles})) == ["organization.group.role.assigned"] * 2
    assert recorded(api.delete(inside, {"roles": roles})) == ["organization.group.role.deleted"] * 2
    assert recorded(api.patch(path, {"name": "h"})) == ["group.updated"]
    assert recorded(api.patch(path, {"description": "Nobody sees this in an event."})) == []
    judged(tenant)


def test_no_event_is_recorded_for_changes_of_roles_permissions_or_clients(
    api: Management, tenant: Tenant, ada: User, recorded: Recorded
) -> None:
    recorded(api.get("roles"))
    role = api.post("roles", {"name": "editor"})
    assert recorded(role) == []
    identifier = "https://api.example.test"
    permissions = {"permissions": [{"resource_server_identifier": identifier, "permission_name": "read:orders"}]}
    calls = [
        api.patch(f"roles/{role.json['id']}", {"name": "writer"}),
        api.post(f"roles/{role.json['id']}/users", {"users": [ada.user_id]}),
        api.post("resource-servers", {"identifier": identifier, "scopes": [{"value": "read:orders"}]}),
        api.post(f"roles/{role.json['id']}/permissions", permissions),
        api.post(f"users/{segment(ada.user_id)}/permissions", permissions),
        api.delete(f"users/{segment(ada.user_id)}/roles", {"roles": [role.json["id"]]}),
        api.post("clients", {"name": "Shop"}),
        api.delete(f"roles/{role.json['id']}"),
    ]
    assert [recorded(answer) for answer in calls] == [[]] * len(calls)


def test_the_event_of_a_connection_contains_its_clients(
    api: Management, tenant: Tenant, database_connection: Connection, recorded: Recorded
) -> None:
    client = api.post("clients", {"name": "Shop"}).json["client_id"]
    recorded(api.get("clients"))
    path = f"connections/{database_connection.pk}/clients"
    assert recorded(api.patch(path, [{"client_id": client, "status": True}])) == ["connection.updated"]
    assert recorded(api.patch(path, [{"client_id": client, "status": True}])) == []
    assert recorded(api.delete(f"clients/{client}")) == ["connection.updated"]
    assert api.get(path).json == {"clients": []}
    judged(tenant)


def test_deleting_a_user_removes_memberships_of_organizations_and_then_of_groups(
    api: Management, tenant: Tenant, story: dict[str, Any], recorded: Recorded
) -> None:
    recorded(api.get("users"))
    assert recorded(api.delete(f"users/{story['user']}")) == [
        "organization.member.role.deleted",
        "organization.member.deleted",
        "group.member.deleted",
        "user.deleted",
    ]
    judged(tenant)


def test_deleting_a_role_removes_it_from_groups_and_then_from_organizations(
    api: Management, tenant: Tenant, story: dict[str, Any], recorded: Recorded
) -> None:
    recorded(api.get("users"))
    assert recorded(api.delete(f"roles/{story['role']}")) == [
        "group.role.deleted",
        "organization.group.role.deleted",
        "organization.member.role.deleted",
    ]
    judged(tenant)


def test_deleting_a_group_removes_its_members_first(api: Management, tenant: Tenant, story: dict[str, Any], recorded: Recorded) -> None:
    recorded(api.get("users"))
    assert recorded(api.delete(f"groups/{story['group']}")) == [
        "group.member.deleted",
        "group.member.deleted",
        "group.role.deleted",
        "organization.group.role.deleted",
        "group.deleted",
    ]
    judged(tenant)


def test_deleting_an_organization_removes_its_members_first(
    api: Management, tenant: Tenant, story: dict[str, Any], recorded: Recorded
) -> None:
    recorded(api.get("users"))
    assert recorded(api.delete(f"organizations/{story['organization']}")) == [
        "organization.member.role.deleted",
        "organization.group.role.deleted",
        "organization.member.deleted",
        "organization.connection.removed",
        "group.deleted",
        "organization.deleted",
    ]
    judged(tenant)


def test_deleting_a_connection_first_deletes_its_memberships_its_groups_and_its_users(
    api: Management, tenant: Tenant, story: dict[str, Any], database_connection: Connection, recorded: Recorded
) -> None:
    recorded(api.get("users"))
    assert recorded(api.delete(f"connections/{database_connection.pk}")) == [
        "organization.connection.removed",
        "organization.member.role.deleted",
        "organization.member.deleted",
        "group.member.deleted",
        "user.deleted",
        "connection.deleted",
    ]
    assert recorded(api.delete(f"connections/{story['directory']}")) == [
        "group.member.deleted",
        "group.role.deleted",
        "organization.group.role.deleted",
        "group.deleted",
        "connection.deleted",
    ]
    judged(tenant)
