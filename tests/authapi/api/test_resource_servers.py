"""APIs (resource servers) over the management interface: their scopes, the binding of their tokens, and their types of details."""

from __future__ import annotations

import pytest

from identity.models import Tenant, User
from tests.factories.organizations import make_role
from tests.management import Management, segment

ORDERS = "https://api.example.test/orders"
SCOPES = [{"value": "read:orders", "description": "Read orders"}, {"value": "write:orders", "description": ""}]


def test_an_api_is_found_by_its_id_and_by_its_percent_encoded_identifier(api: Management) -> None:
    made = api.post("resource-servers", {"identifier": ORDERS, "name": "Orders", "scopes": SCOPES, "enforce_policies": True})
    assert made.status == 201
    assert (made.json["scopes"], made.json["is_system"], made.json["enforce_policies"]) == (SCOPES, False, True)
    for name in (made.json["id"], segment(ORDERS), segment(segment(ORDERS))):
        assert api.get(f"resource-servers/{name}").json == made.json, name
    assert api.post("resource-servers", {"identifier": ORDERS}).status == 409


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"identifier": ""},
        {"identifier": "a", "name": "<b>"},
        {"identifier": "a", "scopes": ["read"]},
        {"identifier": "a", "scopes": [{"value": "a b"}]},
        {"identifier": "a", "scopes": [{"value": "a"}, {"value": "a"}]},
        {"identifier": "a", "token_lifetime": 2_592_001},
        {"identifier": "a", "token_dialect": "morse"},
        {"identifier": "a", "is_system": True},
    ],
)
def test_an_invalid_body_creates_no_api(api: Management, body: object) -> None:
    answer = api.post("resource-servers", body)
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert [found["is_system"] for found in api.get("resource-servers").json] == [True]


@pytest.mark.parametrize("promise", [{"consent_policy": "x"}, {"token_encryption": {"a": 1}}])
def test_a_setting_that_the_service_does_not_support_is_refused(api: Management, promise: dict[str, object]) -> None:
    answer = api.post("resource-servers", {"identifier": ORDERS, **promise})
    assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")
    assert api.post("resource-servers", {"identifier": ORDERS, **dict.fromkeys(promise)}).status == 201


def test_a_removed_scope_is_removed_from_roles_users_and_grants(api: Management, tenant: Tenant, ada: User) -> None:
    server = api.post("resource-servers", {"identifier": ORDERS, "scopes": SCOPES}).json["id"]
    role = make_role(tenant)
    both = {"permissions": [{"resource_server_identifier": ORDERS, "permission_name": scope["value"]} for scope in SCOPES]}
    assert api.post(f"roles/{role.pk}/permissions", both).status == 201
    assert api.post(f"users/{segment(ada.user_id)}/permissions", both).status == 201
    client = api.post("clients", {"name": "Shop"}).json["client_id"]
    grant = api.post("client-grants", {"client_id": client, "audience": ORDERS, "scope": ["read:orders", "write:orders"]}).json["id"]
    assert api.patch(f"resource-servers/{server}", {"scopes": SCOPES[:1]}).json["scopes"] == SCOPES[:1]
    assert api.get(f"client-grants/{grant}").json["scope"] == ["read:orders"]
    for path in (f"roles/{role.pk}/permissions", f"users/{segment(ada.user_id)}/permissions"):
        assert [found["permission_name"] for found in api.get(path).json] == ["read:orders"], path
    assert api.patch(f"resource-servers/{server}", {"name": "Orders"}).json["scopes"] == SCOPES[:1]


def test_the_management_interface_is_listed_and_cannot_be_changed(api: Management, tenant: Tenant) -> None:
    identifier = f"http://{tenant.pk}.example.test/api/v2/"
    (system,) = api.get("resource-servers", [("identifiers", identifier)]).json
    assert (system["is_system"], system["identifier"]) == (True, identifier)
    assert "read:users" in {scope["value"] for scope in system["scopes"]}
    path = f"resource-servers/{segment(identifier)}"
    assert api.patch(path, {"scopes": []}).status == 403
    assert api.delete(path).status == 403
    assert api.patch(path, {"token_lifetime": 3600}).json["token_lifetime"] == 3600


def test_deleting_an_api_deletes_its_grants_and_permissions(api: Management, tenant: Tenant) -> None:
    server = api.post("resource-servers", {"identifier": ORDERS, "scopes": SCOPES}).json["id"]
    client = api.post("clients", {"name": "Shop"}).json["client_id"]
    grant = api.post("client-grants", {"client_id": client, "audience": ORDERS}).json["id"]
    role = make_role(tenant)
    api.post(f"roles/{role.pk}/permissions", {"permissions": [{"resource_server_identifier": ORDERS, "permission_name": "read:orders"}]})
    assert [api.delete(f"resource-servers/{server}").status for _ in range(2)] == [204, 204]
    assert api.get(f"client-grants/{grant}").status == 404
    assert api.get(f"roles/{role.pk}/permissions").json == []
    for answer in (api.get(f"resource-servers/{server}"), api.patch(f"resource-servers/{server}", {})):
        assert (answer.status, answer.json["errorCode"]) == (404, "inexistent_resource_server")


def test_an_api_returns_the_binding_of_its_tokens(api: Management) -> None:
    asked = {"mechanism": "dpop", "required": True, "required_for": "public_clients"}
    made = api.post("resource-servers", {"identifier": ORDERS, "proof_of_possession": asked}).json
    assert made["proof_of_possession"] == asked
    path = f"resource-servers/{made['id']}"
    assert (
        api.patch(path, {"proof_of_possession": {"mechanism": "mtls", "required": False}}).json["proof_of_possession"]["mechanism"]
        == "mtls"
    )
    assert "proof_of_possession" not in api.patch(path, {"proof_of_possession": None}).json


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"required": True},
        {"mechanism": "dpop"},
        {"mechanism": "telepathy", "required": True},
        {"mechanism": "dpop", "required": "yes"},
        {"mechanism": "dpop", "required": True, "required_for": "nobody"},
        {"mechanism": "dpop", "required": True, "more": 1},
        "dpop",
    ],
)
def test_an_invalid_binding_of_tokens_is_refused(api: Management, asked: object) -> None:
    answer = api.post("resource-servers", {"identifier": ORDERS, "proof_of_possession": asked})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")


# --- Types of authorization details (RFC 9396) ------------------------------------------------------------------------------

PAYMENT = {
    "type": "payment",
    "title": "Payment",
    "sentence": "Pay {amount} to {payee}",
    "schema": {"type": "object", "properties": {"type": {}, "amount": {"type": "number"}, "payee": {"type": "string"}}},
}


def test_registered_types_are_returned_and_replaced_as_a_whole(api: Management) -> None:
    # The second type has only the member `type`, like every type of the upstream system.
    types = [PAYMENT, {"type": "account_access"}]
    made = api.post("resource-servers", {"identifier": ORDERS, "authorization_details": types})
    assert (made.status, made.json["authorization_details"]) == (201, types)
    changed = api.patch(f"resource-servers/{made.json['id']}", {"authorization_details": types[1:]})
    assert changed.json["authorization_details"] == types[1:]
    cleared = api.patch(f"resource-servers/{made.json['id']}", {"authorization_details": None})
    assert "authorization_details" not in cleared.json


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"title": "Payment"}, "type"),
        ({"type": "payment", "template": "x"}, "template"),
        ({"type": "payment", "title": "<b>x</b>"}, "pattern"),
        ({"type": "payment", "schema": []}, "object"),
        ({"type": "payment", "schema": {"$ref": "https://evil.test/"}}, "Type 1 (payment): A $ref must name a schema of $defs"),
        ({**PAYMENT, "sentence": "Pay {sum}"}, "Type 1 (payment): The sentence names {sum}, which the schema does not have"),
    ],
)
def test_a_type_without_a_usable_schema_is_refused(api: Management, entry: dict[str, object], text: str) -> None:
    answer = api.post("resource-servers", {"identifier": ORDERS, "authorization_details": [entry]})
    assert answer.status == 400
    assert text in answer.json["message"]
    assert api.get("resource-servers/" + segment(ORDERS)).status == 404


def test_a_grant_contains_only_types_that_its_api_still_has(api: Management) -> None:
    server = api.post("resource-servers", {"identifier": ORDERS, "authorization_details": [PAYMENT, {"type": "other"}]}).json["id"]
    client = api.post("clients", {"name": "Shop"}).json["client_id"]
    body = {"client_id": client, "audience": ORDERS, "authorization_details_types": ["payment", "other"]}
    refused = api.post("client-grants", {**body, "authorization_details_types": ["unknown"]})
    assert (refused.status, "no type unknown" in refused.json["message"]) == (400, True)
    grant = api.post("client-grants", body).json["id"]
    api.patch(f"resource-servers/{server}", {"authorization_details": [{"type": "other"}]})
    assert api.get(f"client-grants/{grant}").json["authorization_details_types"] == ["other"]


def test_the_management_interface_has_no_types(api: Management) -> None:
    (system,) = api.get("resource-servers").json
    assert api.patch(f"resource-servers/{system['id']}", {"authorization_details": [PAYMENT]}).status == 403
