"""Permissions of roles and users over the management interface."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.models import Permission
from identity.models import Tenant, User
from tests.factories.organizations import make_group, make_role
from tests.management import Management, segment

ORDERS = "https://api.example.test/orders"


def naming(*values: str) -> dict[str, Any]:
    return {"permissions": [{"resource_server_identifier": ORDERS, "permission_name": value} for value in values]}


@pytest.fixture(autouse=True)
def orders(api: Management) -> None:
    scopes = [{"value": "read:orders", "description": "Read orders"}, {"value": "write:orders"}]
    assert api.post("resource-servers", {"identifier": ORDERS, "name": "Orders", "scopes": scopes}).status == 201


def test_a_request_adds_either_all_of_its_permissions_or_none(api: Management, tenant: Tenant) -> None:
    path = f"roles/{make_role(tenant).pk}/permissions"
    assert api.post(path, naming("read:orders", "delete:orders")).json["errorCode"] == "invalid_body"
    nowhere = {"permissions": [{"resource_server_identifier": "https://nowhere", "permission_name": "read:orders"}]}
    assert api.post(path, nowhere).json["errorCode"] == "inexistent_resource_server"
    assert not Permission.objects.of(tenant.pk).exists()
    for _ in range(2):
        added = api.post(path, naming("read:orders", "write:orders"))
        assert (added.status, added.json) == (201, {})
    assert api.get(path, {"include_totals": "true"}).json["permissions"][0] == {
        "permission_name": "read:orders",
        "description": "Read orders",
        "resource_server_name": "Orders",
        "resource_server_identifier": ORDERS,
    }
    assert [api.delete(path, naming("read:orders", "delete:orders")).status for _ in range(2)] == [204, 204]
    assert [found["permission_name"] for found in api.get(path).json] == ["write:orders"]
    assert api.get("roles/rol_0123456789abcdef/permissions").json["message"] == "The role does not exist."


@pytest.mark.parametrize("body", [{}, {"permissions": []}, {"permissions": ["read:orders"]}, {"permissions": [{"permission_name": "a"}]}])
def test_invalid_lists_are_refused(api: Management, tenant: Tenant, ada: User, body: object) -> None:
    for path in (f"roles/{make_role(tenant).pk}/permissions", f"users/{segment(ada.user_id)}/permissions"):
        for method in ("POST", "DELETE"):
            answer = api.call(method, path, body=body)
            assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")


def test_the_sources_of_each_permission_of_a_user_are_shown(api: Management, tenant: Tenant, ada: User) -> None:
    role, of_group, group = make_role(tenant), make_role(tenant), make_group(tenant)
    user = f"users/{segment(ada.user_id)}"
    assert api.post(f"{user}/permissions", naming("read:orders")).status == 201
    api.post(f"roles/{role.pk}/permissions", naming("read:orders"))
    api.post(f"roles/{of_group.pk}/permissions", naming("write:orders"))
    api.post(f"{user}/roles", {"roles": [role.pk]})
    api.post(f"groups/{group.pk}/members", {"members": [ada.user_id]})
    api.post(f"groups/{group.pk}/roles", {"roles": [of_group.pk]})
    found = {one["permission_name"]: one["sources"] for one in api.get(f"{user}/permissions").json}
    assert found == {
        "read:orders": [
            {"source_id": "", "source_name": "", "source_type": "DIRECT"},
            {"source_id": role.pk, "source_name": role.name, "source_type": "ROLE"},
        ],
        "write:orders": [{"source_id": of_group.pk, "source_name": of_group.name, "source_type": "ROLE"}],
    }
    there = {"resource_server_identifier": ORDERS}
    effective = api.get(f"{user}/effective-permissions", there).json["permissions"]
    assert {one["permission_name"]: one["sources"] for one in effective} == {"read:orders": ["direct", "roles"], "write:orders": ["roles"]}
    assert api.get(f"{user}/effective-permissions").status == 400
    path = f"{user}/effective-permissions/sources/effective-roles"
    roles = api.get(path, {**there, "permission_name": "write:orders"}).json["roles"]
    assert [(one["id"], one["sources"]) for one in roles] == [(of_group.pk, ["groups"])]
    assert api.get(path, {**there, "permission_name": "delete:orders"}).json == {"roles": []}
    assert api.get(path, there).status == 400
    assert [api.delete(f"{user}/permissions", naming("read:orders")).status for _ in range(2)] == [204, 204]
    assert api.delete(user).status == 204


def test_permissions_are_deleted_with_their_role_or_user(api: Management, tenant: Tenant, ada: User) -> None:
    role, user = make_role(tenant), f"users/{segment(ada.user_id)}"
    api.post(f"roles/{role.pk}/permissions", naming("read:orders"))
    api.post(f"{user}/permissions", naming("read:orders"))
    assert (api.delete(f"roles/{role.pk}").status, api.delete(user).status) == (200, 204)
    assert api.get(f"{user}/permissions").json["errorCode"] == "inexistent_user"
