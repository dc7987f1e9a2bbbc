from __future__ import annotations

from typing import Any

import pytest

from identity.models import Role, Tenant, User, UserRole
from tests.factories.identity import make_connection, make_user
from tests.factories.organizations import make_group, make_organization, make_role
from tests.management import Management, segment

UNKNOWN = "rol_0123456789abcdef"


def test_a_new_role_is_returned_with_status_200_and_can_be_read(api: Management) -> None:
    made = api.post("roles", {"name": "editor", "description": "Edits"})
    assert made.status == 200
    assert made.json == {"id": made.json["id"], "name": "editor", "description": "Edits", "type": "tenant"}
    assert api.get(f"roles/{made.json['id']}").json == made.json


def test_two_roles_of_the_tenant_or_of_one_organization_cannot_have_the_same_name(api: Management, tenant: Tenant) -> None:
    organization = make_organization(tenant)
    make_role(tenant, "editor")
    assert api.post("roles", {"name": "editor"}).status == 409
    own = {"name": "editor", "type": "organization", "owner_id": organization.pk}
    made = api.post("roles", own)
    assert (made.status, made.json["owner_id"]) == (200, organization.pk)
    assert api.post("roles", own).status == 409


def test_a_role_of_an_organization_must_name_an_existing_organization(api: Management, tenant: Tenant) -> None:
    organization = make_organization(tenant)
    bodies = [
        {"name": "a", "type": "organization"},
        {"name": "a", "owner_id": organization.pk},
        {"name": "a", "type": "organization", "owner_id": "org_0123456789abcdef"},
        {"name": "a", "type": "organization", "owner_id": "nowhere"},
    ]
    for body in bodies:
        answer = api.post("roles", body)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), body


@pytest.mark.parametrize(
    "body", [{}, {"name": ""}, {"name": 1}, {"name": "a" * 51}, {"name": "a", "x": 1}, {"name": "a", "type": "global"}]
)
def test_an_invalid_body_creates_no_role(api: Management, body: object) -> None:
    answer = api.post("roles", body)
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert api.get("roles").json == []


def test_a_change_replaces_the_sent_members_and_null_clears_a_member(api: Management, tenant: Tenant) -> None:
    path = f"roles/{make_role(tenant, 'editor', description='Edits').pk}"
    assert api.patch(path, {"name": "writer"}).json["description"] == "Edits"
    assert api.patch(path, {"description": None}).json["description"] == ""
    assert api.patch(path, {}).json["name"] == "writer"
    assert api.patch(path, {"type": "organization"}).status == 400


def test_a_deleted_role_is_not_found_and_a_second_deletion_gets_404(api: Management, tenant: Tenant) -> None:
    path = f"roles/{make_role(tenant).pk}"
    first = api.delete(path)
    assert (first.status, first.json) == (200, {})
    assert api.delete(path).status == 404
    missing = api.get(path)
    assert missing.json == {"statusCode": 404, "error": "Not Found", "message": "The role does not exist."}


def test_roles_can_be_filtered_by_name_by_type_and_by_owner(api: Management, tenant: Tenant) -> None:
    organization = make_organization(tenant)
    for name in ("Editor", "Reader"):
        make_role(tenant, name)
    make_role(tenant, "Local editor", type="organization", organization_id=organization.pk)

    def names(query: dict[str, str]) -> list[str]:
        return [role["name"] for role in api.get("roles", query).json]

    assert names({"name_filter": "EDIT"}) == ["Editor", "Local editor"]
    assert names({"type": "organization"}) == ["Local editor"]
    assert names({"owner_id": organization.pk}) == ["Local editor"]
    assert api.get("roles", {"type": "galaxy"}).status == 400
    page = api.get("roles", {"include_totals": "true", "page": "0", "per_page": "2"}).json
    assert (page["start"], page["limit"], page["total"], len(page["roles"])) == (0, 2, 3, 2)


def test_a_request_with_an_unknown_role_assigns_none_of_its_roles(api: Management, tenant: Tenant, ada: User) -> None:
    path = f"users/{segment(ada.user_id)}/roles"
    first, second = make_role(tenant), make_role(tenant)
    assert api.post(path, {"roles": [first.pk, UNKNOWN]}).status == 404
    assert api.get(path).json == []
    assert [api.post(path, {"roles": [first.pk, second.pk]}).status for _ in range(2)] == [204, 204]
    assert {role["id"] for role in api.get(path).json} == {first.pk, second.pk}
    assert api.delete(path, {"roles": [first.pk, UNKNOWN]}).status == 204
    assert api.delete(path, {"roles": [first.pk]}).status == 204
    assert [role["id"] for role in api.get(path, {"include_totals": "true"}).json["roles"]] == [second.pk]


def test_an_empty_list_and_an_invalid_id_and_an_unknown_user_are_refused(api: Management, tenant: Tenant, ada: User) -> None:
    path = f"users/{segment(ada.user_id)}/roles"
    bodies: list[Any] = [{"roles": []}, {}, {"roles": ["editor"]}, {"roles": UNKNOWN}, {"roles": [UNKNOWN], "x": 1}]
    for body in bodies:
        answer = api.post(path, body)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), body
    unknown = api.post("users/database%7Cnobody/roles", {"roles": [make_role(tenant).pk]})
    assert (unknown.status, unknown.json["errorCode"]) == (404, "inexistent_user")
    assert api.get("users/nobody/roles").json["errorCode"] == "invalid_uri"


def test_a_role_can_be_assigned_to_several_users(api: Management, tenant: Tenant, ada: User) -> None:
    role = make_role(tenant)
    path = f"roles/{role.pk}/users"
    bob = make_user(connection=ada.connection, email="bob@example.test")
    assert api.post(path, {"users": [ada.user_id, "database|nobody"]}).status == 404
    assert UserRole.objects.of(tenant.pk).count() == 0
    given = api.post(path, {"users": [bob.user_id, ada.user_id]})
    assert (given.status, given.json) == (200, {})
    taken = api.get(path, {"take": "1"}).json
    assert taken["users"] == [{"user_id": ada.user_id, "email": "ada@example.test", "name": "ada@example.test"}]
    rest = api.get(path, {"take": "1", "from": taken["next"]}).json
    assert [user["user_id"] for user in rest["users"]] == [bob.user_id]
    assert "next" not in rest
    assert api.delete(path, {"users": [ada.user_id]}).status == 405


def test_a_role_of_an_organization_applies_only_in_that_organization(api: Management, tenant: Tenant, ada: User) -> None:
    organization, other = make_organization(tenant), make_organization(tenant)
    role = make_role(tenant, type="organization", organization_id=organization.pk)
    group = make_group(tenant)
    for one in (organization, other):
        assert api.post(f"organizations/{one.pk}/members", {"members": [ada.user_id]}).status == 204
    body = {"roles": [role.pk]}
    refused = [
        f"users/{segment(ada.user_id)}/roles",
        f"groups/{group.pk}/roles",
        f"organizations/{other.pk}/members/{segment(ada.user_id)}/roles",
        f"organizations/{other.pk}/groups/{group.pk}/roles",
    ]
    for path in refused:
        answer = api.post(path, body)
        assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported"), path
    assert api.post(f"organizations/{organization.pk}/members/{segment(ada.user_id)}/roles", body).status == 204
    assert api.delete(f"organizations/{organization.pk}").status == 204
    assert not Role.objects.of(tenant.pk).filter(pk=role.pk).exists()


def test_reading_the_users_of_a_role_requires_two_scopes_or_a_special_scope(tenant: Tenant, ada: User) -> None:
    role = make_role(tenant)
    path = f"roles/{role.pk}/users"
    assert Management(tenant, scope="read:users read:roles").get(path).status == 200
    assert Management(tenant, scope="read:role_members").get(path).status == 200
    refused = Management(tenant, scope="read:users").get(path)
    assert (refused.status, refused.json["errorCode"]) == (403, "insufficient_scope")
    assert refused.json["message"] == "Insufficient scope, expected any of: read:users,read:roles,read:role_members"


def test_effective_roles_are_assigned_directly_or_through_nested_groups(api: Management, tenant: Tenant, ada: User) -> None:
    directory = make_connection(tenant_id=tenant.pk, strategy="samlp", options={"signInEndpoint": "https://idp.example.test"})
    inner = make_group(tenant, "inner", type="connection", connection_id=directory.pk)
    outer = make_group(tenant, "outer", type="connection", connection_id=directory.pk)
    direct, both, nested, unrelated = (make_role(tenant) for _ in range(4))
    api.post(f"groups/{inner.pk}/members", {"members": [ada.user_id]})
    api.post(f"groups/{outer.pk}/members", {"members": [{"id": inner.pk, "member_type": "group"}]})
    # The two groups now contain each other. The search for nested groups must end nevertheless.
    api.post(f"groups/{inner.pk}/members", {"members": [outer.pk]})
    api.post(f"users/{segment(ada.user_id)}/roles", {"roles": [direct.pk, both.pk]})
    api.post(f"groups/{outer.pk}/roles", {"roles": [both.pk, nested.pk]})
    path = f"users/{segment(ada.user_id)}/effective-roles"
    found = {role["id"]: role["sources"] for role in api.get(path).json["roles"]}
    assert found == {direct.pk: ["direct"], both.pk: ["direct", "groups"], nested.pk: ["groups"]}
    sources = api.get(f"{path}/sources/groups", {"role_id": nested.pk}).json
    assert [group["name"] for group in sources["groups"]] == ["outer"]
    assert api.get(f"{path}/sources/groups").status == 400
    assert api.get(f"{path}/sources/groups", {"role_id": unrelated.pk}).json == {"groups": []}
