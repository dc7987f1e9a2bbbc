from __future__ import annotations

from typing import Any

import pytest

from identity.models import Connection, Organization, Tenant, User
from tests.factories.identity import make_connection, make_user
from tests.factories.organizations import make_group, make_organization, make_role
from tests.management import Management, segment

UNKNOWN = "org_0123456789abcdef"
NOT_FOUND = {"statusCode": 404, "error": "Not Found", "message": "No organization found by that id or name."}
COLOURS = {"primary": "#112233", "page_background": "#fff"}


@pytest.fixture
def acme(tenant: Tenant) -> Organization:
    return make_organization(tenant, "acme")


def test_an_organization_is_created_with_its_connections_and_can_be_read(api: Management, database_connection: Connection) -> None:
    body: dict[str, Any] = {
        "name": "acme",
        "display_name": "Acme",
        "branding": {"logo_url": "https://acme.example.test/logo.svg", "colors": COLOURS},
        "metadata": {"tier": "gold"},
        "token_quota": {"client_credentials": {"per_day": 5}},
    }
    flags = {"assign_membership_on_login": True, "show_as_button": False, "is_signup_enabled": True}
    entry = {"connection_id": database_connection.pk, **flags}
    made = api.post("organizations", {**body, "enabled_connections": [entry]})
    assert made.status == 201
    assert made.json.pop("enabled_connections") == [{**entry, "connection": {"name": "people", "strategy": "database"}}]
    assert made.json.items() >= body.items()
    assert api.get(f"organizations/{made.json['id']}").json == {**body, "id": made.json["id"]}
    assert api.get("organizations/name/acme").json["id"] == made.json["id"]


def test_creating_an_organization_with_connections_requires_a_separate_scope(tenant: Tenant, database_connection: Connection) -> None:
    api = Management(tenant, scope="create:organizations")
    entry = {"connection_id": database_connection.pk}
    refused = api.post("organizations", {"name": "acme", "enabled_connections": [entry]})
    assert (refused.status, refused.json["errorCode"]) == (403, "insufficient_scope")
    assert api.post("organizations", {"name": "acme"}).status == 201


def test_an_unknown_connection_creates_no_organization(api: Management) -> None:
    answer = api.post("organizations", {"name": "acme", "enabled_connections": [{"connection_id": "con_0123456789abcdef"}]})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert api.get("organizations").json == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "Acme"},
        {"name": "org_acme"},
        {"name": "a" * 51},
        {"name": "acme", "display_name": ""},
        {"name": "acme", "branding": {"logo_url": "http://acme.example.test"}},
        {"name": "acme", "branding": {"colors": {"primary": "#112233"}}},
        {"name": "acme", "metadata": {"n": 1}},
        {"name": "acme", "metadata": {str(number): "" for number in range(26)}},
        {"name": "acme", "members": []},
    ],
)
def test_an_invalid_body_creates_no_organization(api: Management, body: object) -> None:
    answer = api.post("organizations", body)
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert api.get("organizations").json == []


def test_a_change_replaces_whole_maps_and_null_clears_them(api: Management, acme: Organization) -> None:
    path = f"organizations/{acme.pk}"
    assert api.patch(path, {"metadata": {"a": "b"}, "display_name": "Acme", "is_app_entitlement_active": True}).status == 200
    assert api.patch(path, {"metadata": {"c": "d"}}).json["metadata"] == {"c": "d"}
    cleared = api.patch(path, {"metadata": None, "display_name": None, "is_app_entitlement_active": None}).json
    assert cleared == {"id": acme.pk, "name": "acme"}
    assert api.patch(path, {"enabled_connections": []}).status == 400


def test_the_name_of_an_organization_is_unique(api: Management, tenant: Tenant, acme: Organization) -> None:
    other = make_organization(tenant)
    assert api.post("organizations", {"name": "acme"}).status == 409
    assert api.patch(f"organizations/{other.pk}", {"name": "acme"}).status == 409


def test_unknown_ids_get_404(api: Management, acme: Organization) -> None:
    assert api.delete(f"organizations/{acme.pk}").status == 204
    for path in (acme.pk, UNKNOWN, "name/nobody", f"{UNKNOWN}/members", f"{UNKNOWN}/enabled_connections", f"{UNKNOWN}/groups"):
        assert api.get(f"organizations/{path}").json == NOT_FOUND, path
    assert api.delete(f"organizations/{acme.pk}").json == NOT_FOUND


def test_lists_can_be_sorted_and_a_summary_has_fewer_fields(api: Management, tenant: Tenant) -> None:
    for name in ("zeta", "alpha"):
        make_organization(tenant, name, display_name=name.title(), metadata={"secret": "plan"})
    assert [found["name"] for found in api.get("organizations", {"sort": "name:1"}).json] == ["alpha", "zeta"]
    assert [found["name"] for found in api.get("organizations", {"sort": "created_at:-1", "take": "5"}).json["organizations"]] == [
        "alpha",
        "zeta",
    ]
    assert api.get("organizations", {"sort": "metadata:1"}).status == 400
    summary = Management(tenant, scope="read:organizations_summary").get("organizations").json
    assert {frozenset(found) for found in summary} == {frozenset({"id", "name", "display_name"})}


def test_a_request_adds_all_of_its_members_to_an_organization_or_none(
    api: Management, tenant: Tenant, acme: Organization, ada: User
) -> None:
    path, role = f"organizations/{acme.pk}/members", make_role(tenant)
    assert api.post(path, {"members": [ada.user_id, "database|nobody"]}).status == 404
    assert api.get(path).json == []
    assert [api.post(path, {"members": [ada.user_id]}).status for _ in range(2)] == [204, 204]
    assert api.post(f"{path}/{segment(ada.user_id)}/roles", {"roles": [role.pk]}).status == 204
    assert api.get(path, {"take": "10"}).json == {
        "members": [{"user_id": ada.user_id, "email": "ada@example.test", "name": "ada@example.test"}]
    }
    shown = api.get(path, {"fields": "user_id,roles", "include_fields": "true"}).json
    assert shown == [{"user_id": ada.user_id, "roles": [{"id": role.pk, "name": role.name}]}]
    assert [api.delete(path, {"members": [ada.user_id, "database|nobody"]}).status for _ in range(2)] == [204, 204]
    assert api.get(f"{path}/{segment(ada.user_id)}/roles").json == []


def test_a_list_with_roles_of_members_requires_a_separate_scope(tenant: Tenant, acme: Organization) -> None:
    api = Management(tenant, scope="read:organization_members")
    assert api.get(f"organizations/{acme.pk}/members").status == 200
    assert api.get(f"organizations/{acme.pk}/members", {"fields": "roles"}).status == 403


def test_only_members_have_roles_in_an_organization(api: Management, tenant: Tenant, acme: Organization, ada: User) -> None:
    path, role = f"organizations/{acme.pk}/members/{segment(ada.user_id)}/roles", make_role(tenant)
    refused = api.post(path, {"roles": [role.pk]})
    assert (refused.status, refused.json["errorCode"]) == (400, "invalid_body")
    assert api.delete(path, {"roles": [role.pk]}).status == 204
    api.post(f"organizations/{acme.pk}/members", {"members": [ada.user_id]})
    assert api.post(path, {"roles": [role.pk, "rol_0123456789abcdef"]}).status == 404
    assert api.get(path).json == []
    assert [api.post(path, {"roles": [role.pk]}).status for _ in range(2)] == [204, 204]
    assert api.get(path, {"include_totals": "true"}).json["total"] == 1
    assert api.get(f"users/{segment(ada.user_id)}/organizations").json == [{"id": acme.pk, "name": "acme"}]
    assert [api.delete(path, {"roles": [role.pk]}).status for _ in range(2)] == [204, 204]
    unknown = api.get(f"organizations/{acme.pk}/members/database%7Cnobody/roles")
    assert (unknown.status, unknown.json["errorCode"]) == (404, "inexistent_user")


def test_the_older_and_the_newer_endpoint_for_connections_show_the_same_row(
    api: Management, acme: Organization, database_connection: Connection
) -> None:
    old, new = (f"organizations/{acme.pk}/{name}" for name in ("enabled_connections", "connections"))
    added = api.post(old, {"connection_id": database_connection.pk})
    assert (added.status, added.json["show_as_button"]) == (201, True)
    one = f"{new}/{database_connection.pk}"
    changed = api.patch(one, {"is_enabled": False, "organization_connection_name": "staff", "organization_access_level": "full"})
    assert changed.json == api.get(one).json
    assert (changed.json["is_enabled"], changed.json["organization_connection_name"]) == (False, "staff")
    assert api.get(old).json == []
    gone = api.get(f"{old}/{database_connection.pk}")
    assert (gone.status, gone.json["message"]) == (404, "No connection found by that id.")
    assert [len(api.get(new, {"is_enabled": value}).json) for value in ("true", "false", "")] == [0, 1, 1]
    assert api.get(new, {"is_enabled": "maybe"}).status == 400
    assert "organization_connection_name" not in api.patch(one, {"organization_connection_name": None, "is_enabled": True}).json
    assert api.get(old, {"include_totals": "true"}).json["enabled_connections"][0]["connection_id"] == database_connection.pk
    for path in (old, new):
        assert api.post(path, {"connection_id": database_connection.pk}).status == 409
    assert [api.delete(f"{old}/{database_connection.pk}").status for _ in range(2)] == [204, 204]
    assert api.patch(one, {"is_enabled": True}).status == 404


def test_sign_up_requires_a_database_connection_that_adds_members(api: Management, tenant: Tenant, acme: Organization) -> None:
    path = f"organizations/{acme.pk}/enabled_connections"
    mail = make_connection(tenant_id=tenant.pk, strategy="email")
    people = make_connection(tenant_id=tenant.pk)
    bodies = [
        {"connection_id": mail.pk, "assign_membership_on_login": True, "is_signup_enabled": True},
        {"connection_id": people.pk, "is_signup_enabled": True},
    ]
    for body in bodies:
        answer = api.post(path, body)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert api.post(path, {**bodies[1], "assign_membership_on_login": True}).status == 201
    assert api.patch(f"{path}/{people.pk}", {"assign_membership_on_login": False}).status == 400
    assert api.post(path, {"connection_id": "con_0123456789abcdef"}).status == 404
    assert api.post(path, {"connection_id": people.pk, "is_enabled": True}).status == 400


def test_groups_have_roles_in_an_organization(api: Management, tenant: Tenant, acme: Organization, ada: User) -> None:
    group, own = make_group(tenant, "guests"), make_group(tenant, "staff", type="organization", organization_id=acme.pk)
    role = make_role(tenant)
    path = f"organizations/{acme.pk}/groups/{group.pk}/roles"
    assert api.post(path, {"roles": [role.pk, "rol_0123456789abcdef"]}).status == 404
    assert [api.post(path, {"roles": [role.pk]}).status for _ in range(2)] == [204, 204]
    assert [found["id"] for found in api.get(path).json["roles"]] == [role.pk]
    assert [found["id"] for found in api.get(f"organizations/{acme.pk}/groups").json["groups"]] == [group.pk, own.pk]
    assert [found["id"] for found in api.get(f"organizations/{acme.pk}/roles/{role.pk}/groups").json["groups"]] == [group.pk]
    api.post(f"groups/{group.pk}/members", {"members": [ada.user_id]})
    effective = api.get(f"organizations/{acme.pk}/members/{segment(ada.user_id)}/effective-roles").json["roles"]
    assert effective == [{"id": role.pk, "name": role.name, "description": "", "sources": ["groups"]}]
    api.post(f"organizations/{acme.pk}/members", {"members": [ada.user_id]})
    api.post(f"organizations/{acme.pk}/members/{segment(ada.user_id)}/roles", {"roles": [role.pk]})
    members = api.get(f"organizations/{acme.pk}/roles/{role.pk}/members").json["members"]
    assert [member["user_id"] for member in members] == [ada.user_id]
    assert [api.delete(path, {"roles": [role.pk]}).status for _ in range(2)] == [204, 204]
    assert api.get(f"organizations/{acme.pk}/groups/engineers/roles").json["errorCode"] == "invalid_uri"


def test_a_list_of_members_can_be_read_in_the_checkpoint_format(api: Management, acme: Organization, ada: User) -> None:
    users = [ada, *(make_user(connection=ada.connection) for _ in range(3))]
    path = f"organizations/{acme.pk}/members"
    api.post(path, {"members": [user.user_id for user in users]})
    found, query = [], {"take": "3"}
    while True:
        page = api.get(path, query).json
        found += [member["user_id"] for member in page["members"]]
        if "next" not in page:
            break
        query["from"] = page["next"]
    assert found == [user.user_id for user in users]
