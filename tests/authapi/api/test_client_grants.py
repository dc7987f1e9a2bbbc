"""Client grants over the management interface: which scopes of an API a client may request, for itself or for users."""

from __future__ import annotations

import pytest

from authapi.models import Client
from identity.models import Tenant
from tests.factories.organizations import make_organization
from tests.management import Management, token_of

ORDERS = "https://api.example.test/orders"
SCOPES = [{"value": "read:orders"}, {"value": "write:orders"}]


@pytest.fixture
def client(api: Management) -> str:
    """Create a client and an API with two scopes."""
    assert api.post("resource-servers", {"identifier": ORDERS, "scopes": SCOPES}).status == 201
    return str(api.post("clients", {"name": "Robot", "app_type": "non_interactive"}).json["client_id"])


def test_a_client_has_one_grant_per_api_and_subject_type(api: Management, client: str) -> None:
    body = {"client_id": client, "audience": ORDERS, "scope": ["read:orders"]}
    made = api.post("client-grants", body)
    assert made.status == 201
    assert made.json == {"id": made.json["id"], **body, "subject_type": "client"}
    assert api.get(f"client-grants/{made.json['id']}").json == made.json
    assert api.post("client-grants", body).status == 409
    assert api.post("client-grants", {**body, "subject_type": "user"}).status == 201


def test_a_grant_can_name_only_existing_objects(api: Management, client: str) -> None:
    cases = [
        ({"client_id": client, "audience": "https://nowhere.example.test"}, 404, "inexistent_resource_server"),
        ({"client_id": "x" * 32, "audience": ORDERS}, 404, "inexistent_client"),
        ({"client_id": client, "audience": ORDERS, "scope": ["delete:orders"]}, 400, "invalid_body"),
        ({"client_id": client, "audience": ORDERS, "x": 1}, 400, "invalid_body"),
        ({"audience": ORDERS}, 400, "invalid_body"),
        ({"client_id": client}, 400, "invalid_body"),
        ({"default_for": "third_party_clients", "audience": ORDERS}, 400, "operation_not_supported"),
    ]
    for body, status, code in cases:
        answer = api.post("client-grants", body)
        assert (answer.status, answer.json["errorCode"]) == (status, code), body
    assert api.get("client-grants").json == []


def test_a_change_replaces_the_scopes_and_needs_at_least_one_field(api: Management, client: str) -> None:
    body = {"client_id": client, "audience": ORDERS, "scope": ["read:orders"], "organization_usage": "allow"}
    path = f"client-grants/{api.post('client-grants', body).json['id']}"
    assert api.patch(path, {"scope": ["write:orders"]}).json["scope"] == ["write:orders"]
    cleared = api.patch(path, {"scope": None, "organization_usage": None}).json
    assert (cleared["scope"], "organization_usage" in cleared) == ([], False)
    assert api.patch(path, {"scope": ["delete:orders"]}).json["errorCode"] == "invalid_body"
    assert api.patch(path, {}).status == 400
    assert api.patch(path, {"audience": ORDERS}).status == 400
    assert [api.delete(path).status for _ in range(2)] == [204, 204]
    assert (api.get(path).status, api.patch(path, {"scope": []}).status) == (404, 404)


def test_a_grant_of_all_scopes_has_no_member_scope_but_grants_every_scope(api: Management, tenant: Tenant, client: str) -> None:
    secret = api.post(f"clients/{client}/rotate-secret").json["client_secret"]
    made = api.post(
        "client-grants", {"client_id": client, "audience": f"http://{tenant.pk}.example.test/api/v2/", "allow_all_scopes": True}
    )
    assert made.json["allow_all_scopes"] is True
    assert "scope" not in made.json
    token = token_of(api.host, Client.objects.of(tenant.pk).get(client_id=client), secret)
    assert api.call("GET", "roles", headers={"authorization": f"Bearer {token}"}).status == 200


def test_a_grant_for_users_gives_the_client_itself_no_access(api: Management, tenant: Tenant, client: str) -> None:
    secret = api.post(f"clients/{client}/rotate-secret").json["client_secret"]
    audience = f"http://{tenant.pk}.example.test/api/v2/"
    api.post("client-grants", {"client_id": client, "audience": audience, "scope": ["read:users"], "subject_type": "user"})
    with pytest.raises(AssertionError):
        token_of(api.host, Client.objects.of(tenant.pk).get(client_id=client), secret)


def test_lists_of_client_grants_can_be_filtered(api: Management, tenant: Tenant, client: str) -> None:
    other = api.post("clients", {"name": "Other"}).json["client_id"]
    api.post("client-grants", {"client_id": client, "audience": ORDERS, "allow_any_organization": True})
    api.post("client-grants", {"client_id": other, "audience": ORDERS, "subject_type": "user"})

    def clients(query: dict[str, str]) -> list[str]:
        return [grant["client_id"] for grant in api.get("client-grants", {"take": "50", **query}).json["client_grants"]]

    assert clients({}) == [client, other]
    assert clients({"client_id": other}) == [other]
    assert clients({"audience": "https://nowhere.example.test"}) == []
    assert clients({"subject_type": "user"}) == [other]
    assert clients({"allow_any_organization": "true"}) == [client]
    assert clients({"allow_any_organization": "false"}) == [other]
    assert clients({"default_for": "third_party_clients"}) == []
    assert api.get("client-grants", {"subject_type": "robot"}).status == 400
    assert api.get("client-grants", {"include_totals": "true"}).json["total"] == 2


def test_a_grant_can_be_added_to_an_organization(api: Management, tenant: Tenant, client: str) -> None:
    organization = make_organization(tenant, "acme")
    grant = api.post("client-grants", {"client_id": client, "audience": ORDERS}).json
    path = f"organizations/{organization.pk}/client-grants"
    added = api.post(path, {"grant_id": grant["id"]})
    assert (added.status, added.json) == (201, grant)
    assert api.post(path, {"grant_id": grant["id"]}).status == 409
    assert api.post(path, {"grant_id": "cgr_0123456789abcdef"}).status == 404
    assert api.get(path, {"include_totals": "true"}).json["client_grants"] == [grant]
    assert api.get(path, {"client_id": "x"}).json == []
    assert api.get(path, [("grant_ids", grant["id"]), ("grant_ids", "cgr_0123456789abcdef")]).json == [grant]
    assert api.get(path, {"grant_ids": "cgr_0123456789abcdef"}).json == []
    assert api.get(path, [("grant_ids", grant["id"])] * 11).json["errorCode"] == "invalid_query_string"
    assert api.get("client-grants/cgr_0123456789abcdef").json["message"] == "The client grant does not exist."
    for malformed in ("x", "", "cgr_0123", "org_0123456789abcdef", None, 5):
        assert api.post(path, {"grant_id": malformed}).json["errorCode"] == "invalid_body"
    assert [found["name"] for found in api.get(f"client-grants/{grant['id']}/organizations").json["organizations"]] == ["acme"]
    assert [api.delete(f"{path}/{grant['id']}").status for _ in range(2)] == [204, 204]
    assert api.get(path).json == []
