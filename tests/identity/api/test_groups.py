from __future__ import annotations

import pytest

from identity.models import Connection, GroupMember, Tenant, User
from tests.factories.identity import make_connection, make_user
from tests.factories.organizations import make_group, make_organization, make_role
from tests.management import Management, segment

UNKNOWN = "grp_1111111111111111111111"


@pytest.fixture
def directory(tenant: Tenant) -> Connection:
    return make_connection(tenant_id=tenant.pk, name="directory", strategy="samlp", options={"signInEndpoint": "https://idp.example.test"})


def test_a_group_of_a_connection_or_an_organization_is_created_and_can_be_read(
    api: Management, tenant: Tenant, directory: Connection
) -> None:
    made = api.post("groups", {"name": "engineers", "type": "connection", "connection_id": directory.pk, "external_id": "e-1"})
    assert made.status == 201
    assert made.json["tenant_name"] == tenant.pk
    assert {"id", "created_at", "updated_at", "external_id", "connection_id"} <= made.json.keys()
    assert api.get(f"groups/{made.json['id']}").json == made.json
    organization = make_organization(tenant)
    inside = api.post("groups", {"name": "engineers", "type": "organization", "organization_id": organization.pk})
    assert (inside.status, inside.json["organization_id"]) == (201, organization.pk)
    assert api.post("groups", {"name": "engineers", "type": "organization", "organization_id": organization.pk}).status == 409


def test_an_invalid_body_creates_no_group(api: Management, directory: Connection) -> None:
    bodies = [
        {"name": "a"},
        {"name": "a", "type": "connection"},
        {"name": "a", "type": "tenant", "connection_id": directory.pk},
        {"name": "a", "type": "connection", "connection_id": "con_0123456789abcdef"},
        {"name": "a", "type": "connection", "connection_id": "directory"},
        {"name": "ä", "type": "tenant"},
        {"name": "a", "type": "tenant", "members": []},
    ]
    for body in bodies:
        answer = api.post("groups", body)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), body
    assert api.get("groups").json == {"groups": []}


def test_a_change_replaces_only_the_sent_members(api: Management, tenant: Tenant) -> None:
    path = f"groups/{make_group(tenant, 'one', external_id='e', description='d').pk}"
    assert api.patch(path, {"name": "two", "external_id": None, "description": None}).json.keys().isdisjoint({"external_id", "description"})
    assert api.get(path).json["name"] == "two"
    make_group(tenant, "taken")
    assert api.patch(path, {"name": "taken"}).status == 409
    assert api.patch(path, {"type": "tenant"}).status == 400


def test_ids_of_another_format_are_refused_and_unknown_ids_get_404(api: Management) -> None:
    for path in ("groups/engineers", "groups/engineers/members", "groups/grp_0/roles"):
        answer = api.get(path)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_uri"), path
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/members"), ("GET", "/roles")):
        answer = api.call(method, f"groups/{UNKNOWN}{path}")
        assert answer.json == {"statusCode": 404, "error": "Not Found", "message": "The group does not exist."}, path


def test_a_list_of_groups_can_be_filtered_and_read_in_the_checkpoint_format(api: Management, tenant: Tenant, directory: Connection) -> None:
    make_group(tenant, "alpha", external_id="x-1")
    make_group(tenant, "beta", type="connection", connection_id=directory.pk)
    make_group(tenant, "gamma", external_id="BETA-2")

    def names(query: dict[str, str]) -> list[str]:
        return [group["name"] for group in api.get("groups", query).json["groups"]]

    assert names({"connection_id": directory.pk}) == ["beta"]
    assert names({"name": "alpha"}) == ["alpha"]
    assert names({"external_id": "x-1"}) == ["alpha"]
    assert names({"search": "bet"}) == ["beta", "gamma"]
    assert api.get("groups", {"fields": "name", "take": "1"}).json["groups"] == [{"name": "alpha"}]
    first = api.get("groups", {"take": "2"}).json
    assert names({"take": "2", "from": first["next"]}) == ["gamma"]


def test_a_request_adds_all_of_its_members_or_no_member(api: Management, tenant: Tenant, ada: User, directory: Connection) -> None:
    outer = make_group(tenant)
    inner = make_group(tenant, type="connection", connection_id=directory.pk)
    path = f"groups/{outer.pk}/members"
    assert api.post(path, {"members": [ada.user_id, "database|nobody"]}).status == 404
    assert api.post(path, {"members": [ada.user_id, UNKNOWN]}).status == 404
    assert GroupMember.objects.of(tenant.pk).count() == 0
    assert api.post(path, {"members": [{"id": ada.user_id, "member_type": "user"}, {"id": inner.pk, "member_type": "group"}]}).status == 204
    assert api.post(path, {"members": [ada.user_id]}).status == 204
    members = api.get(path).json["members"]
    assert [{**member, "created_at": None} for member in members] == [
        {"id": ada.user_id, "member_type": "user", "connection_id": ada.connection_id, "created_at": None},
        {"id": inner.pk, "member_type": "group", "type": "connection", "connection_id": directory.pk, "created_at": None},
    ]
    assert [api.delete(path, {"members": [inner.pk, "database|nobody"]}).status for _ in range(2)] == [204, 204]
    assert [member["id"] for member in api.get(path).json["members"]] == [ada.user_id]


def test_a_group_of_the_tenant_cannot_contain_itself_or_another_group_of_the_tenant(
    api: Management, tenant: Tenant, directory: Connection
) -> None:
    outer, plain = make_group(tenant), make_group(tenant)
    for member in (plain.pk, outer.pk):
        answer = api.post(f"groups/{outer.pk}/members", {"members": [member]})
        assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")


@pytest.mark.parametrize(
    "body",
    [{}, {"members": []}, {"members": [1]}, {"members": [{"id": "a|b", "member_type": "group"}]}, {"members": [{"id": "a|b", "x": 1}]}],
)
def test_invalid_lists_of_members_are_refused(api: Management, tenant: Tenant, body: object) -> None:
    answer = api.post(f"groups/{make_group(tenant).pk}/members", body)
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")


def test_roles_of_a_group_and_groups_of_a_role_can_be_listed(api: Management, tenant: Tenant) -> None:
    group, role = make_group(tenant), make_role(tenant)
    assert api.post(f"groups/{group.pk}/roles", {"roles": [role.pk, "rol_0123456789abcdef"]}).status == 404
    assert [api.post(f"groups/{group.pk}/roles", {"roles": [role.pk]}).status for _ in range(2)] == [204, 204]
    assert [found["id"] for found in api.get(f"groups/{group.pk}/roles").json["roles"]] == [role.pk]
    assert [found["id"] for found in api.get(f"roles/{role.pk}/groups").json["groups"]] == [group.pk]
    assert [api.delete(f"roles/{role.pk}/groups", {"groups": [group.pk, UNKNOWN]}).status for _ in range(2)] == [204, 204]
    assert api.get(f"groups/{group.pk}/roles").json == {"roles": []}
    assert api.post(f"roles/{role.pk}/groups", {"groups": [group.pk, UNKNOWN]}).status == 404
    assert api.post(f"roles/{role.pk}/groups", {"groups": [group.pk]}).status == 204
    assert api.delete(f"groups/{group.pk}/roles", {"roles": [role.pk]}).status == 204


def test_the_groups_of_a_user_contain_the_time_of_joining(api: Management, tenant: Tenant, ada: User) -> None:
    group = make_group(tenant)
    api.post(f"groups/{group.pk}/members", {"members": [ada.user_id]})
    (found,) = api.get(f"users/{segment(ada.user_id)}/groups").json["groups"]
    assert found["id"] == group.pk
    assert "membership_created_at" in found
    assert api.get("users/database%7Cnobody/groups").json["errorCode"] == "inexistent_user"


def test_a_list_of_members_needs_the_same_number_of_sql_statements_for_any_length(api: Management, tenant: Tenant, ada: User) -> None:
    group = make_group(tenant)
    others = [make_user(connection=ada.connection) for _ in range(5)]
    api.post(f"groups/{group.pk}/members", {"members": [user.user_id for user in [ada, *others]]})
    first = api.get(f"groups/{group.pk}/members", {"take": "4"}).json
    rest = api.get(f"groups/{group.pk}/members", {"take": "4", "from": first["next"]}).json
    assert [member["id"] for member in first["members"] + rest["members"]] == [user.user_id for user in [ada, *others]]
