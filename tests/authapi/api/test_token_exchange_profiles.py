"""`/token-exchange-profiles`: required members, and refused values."""

from __future__ import annotations

from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey

from authapi.models import TokenExchangeProfile
from identity.models import Connection, Tenant
from identity.services.connections import create_connection, delete_connection
from identity.services.tenants import create_tenant
from tests.management import Management

PATH = "token-exchange-profiles"
RSA = RSAKey.generate_key(2048).as_dict(private=False)
EC = ECKey.generate_key("P-256")


@pytest.fixture
def acme(tenant: Tenant) -> Connection:
    return create_connection(
        tenant_id=tenant.pk, name="acme", strategy="oidc", options={"client_id": "x", "issuer": "https://acme.example.test"}
    )


def body(connection: Connection, **changes: Any) -> dict[str, Any]:
    good = {
        "name": "Legacy tokens",
        "subject_token_type": "urn:acme:legacy-token",
        "type": "custom_authentication",
        "subject_token": {"issuer": "https://acme.example.test", "audience": "urn:us", "jwks_uri": "https://acme.example.test/keys"},
        "user": {"connection_id": connection.pk},
    }
    return {name: value for name, value in (good | changes).items() if value is not None}


def test_a_profile_is_created_read_listed_changed_and_deleted(api: Management, acme: Connection) -> None:
    made = api.post(PATH, body(acme))
    assert made.status == 201, made.body
    assert made.json["id"].startswith("tep_")
    assert made.json["subject_token"]["single_use"] is True
    assert made.json["user"] == {"connection_id": acme.pk, "claim": "sub", "create": False}
    place = f"{PATH}/{made.json['id']}"
    assert api.get(place).json == made.json
    assert api.get(PATH).json == {"token_exchange_profiles": [made.json]}
    token = {"issuer": "https://other.example.test", "audience": "urn:us", "keys": [RSA, EC.as_dict(private=False)], "single_use": False}
    changed = api.patch(place, {"name": "Newer", "subject_token": token, "user": {"connection_id": acme.pk, "create": True}})
    assert (changed.json["name"], changed.json["subject_token"], changed.json["user"]["create"]) == ("Newer", token, True)
    assert [api.delete(place).status for _ in range(2)] == [204, 204]
    assert api.get(place).json["errorCode"] == "inexistent_token_exchange_profile"
    assert api.patch(place, {"name": "Newer"}).status == 404


@pytest.mark.parametrize(
    "kind",
    [
        "urn:ietf:params:oauth:token-type:access_token",
        "URN:IETF:whatever",
        "urn:auth0:token",
        "urn:okta:token",
        "http://auth0.com/token",
        "https://auth0.com",
        "https://tokens.okta.com/x",
        "https://x@okta.com/token",
        "not a uri",
        "urn:acme:with space",
        "urn:acme:x#fragment",
    ],
)
def test_reserved_types_and_types_that_are_not_uris_are_refused(api: Management, acme: Connection, kind: str) -> None:
    answer = api.post(PATH, body(acme, subject_token_type=kind))
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")


@pytest.mark.parametrize("kind", ["https://auth0.community/token", "https://myauth0.com/token", "urn:ietfs:x", "com.acme:legacy"])
def test_types_that_only_resemble_reserved_types_are_accepted(api: Management, acme: Connection, kind: str) -> None:
    assert api.post(PATH, body(acme, subject_token_type=kind)).status == 201


_TOKEN = {"issuer": "https://acme.example.test", "audience": "urn:us"}


@pytest.mark.parametrize(
    "changes",
    [
        {"subject_token": None},
        {"user": None},
        {"subject_token": _TOKEN},
        {"subject_token": {**_TOKEN, "jwks_uri": "https://acme.example.test/keys", "keys": [RSA]}},
        {"subject_token": {**_TOKEN, "jwks_uri": "ftp://acme.example.test/keys"}},
        {"subject_token": {**_TOKEN, "keys": [EC.as_dict(private=True)]}},
        {"subject_token": {**_TOKEN, "keys": [{"kty": "oct", "k": "c2VjcmV0"}]}},
        {"subject_token": {**_TOKEN, "keys": [{**RSA, "n": RSA["n"][:40]}]}},
        {"subject_token": {**_TOKEN, "keys": [{**RSA, "e": "B" * 300}]}},
        {"user": {"connection_id": "con_ffffffffffffffff"}},
        {"user": {"connection_id": "", "claim": "name"}},
        {"name": "x"},
        {"type": "on_behalf_of"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_profile_with_one_invalid_member_is_refused(api: Management, acme: Connection, changes: dict[str, Any]) -> None:
    answer = api.post(PATH, body(acme, **changes))
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), answer.body
    assert "c2VjcmV0" not in answer.body.decode()


def test_a_profile_cannot_contain_an_action_that_checks_tokens(api: Management, acme: Connection) -> None:
    answer = api.post(PATH, body(acme, action_id="act_1", subject_token=None, user=None))
    assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")


@pytest.mark.parametrize(
    "user", [{"claim": "email", "create": True}, {"create": True}], ids=["by email address", "in a database connection"]
)
def test_only_a_lookup_by_subject_at_an_external_connection_may_create_users(
    api: Management, tenant: Tenant, acme: Connection, user: dict[str, Any]
) -> None:
    people = create_connection(tenant_id=tenant.pk, name="people", strategy="database")
    connection = acme if "claim" in user else people
    assert api.post(PATH, body(connection, user={"connection_id": connection.pk, **user})).status == 400


def test_a_tenant_has_one_profile_for_each_type(api: Management, acme: Connection) -> None:
    assert api.post(PATH, body(acme)).status == 201
    assert api.post(PATH, body(acme)).status == 409


def test_a_connection_of_another_tenant_does_not_exist(api: Management, tenant: Tenant) -> None:
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    foreign = create_connection(
        tenant_id=other.pk, name="acme", strategy="oidc", options={"client_id": "x", "issuer": "https://acme.example.test"}
    )
    assert api.post(PATH, body(foreign)).status == 400


def test_a_profile_is_deleted_with_its_connection(api: Management, tenant: Tenant, acme: Connection) -> None:
    api.post(PATH, body(acme))
    delete_connection(tenant_id=tenant.pk, connection_id=acme.pk)
    assert not TokenExchangeProfile.objects.of(tenant.pk).exists()


def test_a_client_grant_for_users_stores_the_allowed_token_exchange(api: Management, tenant: Tenant) -> None:
    client = api.post("clients", {"name": "Orders", "app_type": "non_interactive"}).json["client_id"]
    api.post("resource-servers", {"identifier": "urn:stock"})
    named = {"client_id": client, "audience": "urn:stock"}
    assert api.post("client-grants", {**named, "token_exchange": "impersonation"}).status == 400
    made = api.post("client-grants", {**named, "subject_type": "user", "token_exchange": "impersonation"})
    assert (made.status, made.json["token_exchange"]) == (201, "impersonation")
    assert "token_exchange" not in api.patch(f"client-grants/{made.json['id']}", {"token_exchange": None}).json


def test_a_client_that_represents_an_api_must_name_an_existing_api(api: Management) -> None:
    api.post("resource-servers", {"identifier": "urn:orders"})
    made = api.post("clients", {"name": "Orders", "app_type": "resource_server", "resource_server_identifier": "urn:orders"})
    assert (made.status, made.json["resource_server_identifier"]) == (201, "urn:orders")
    assert api.patch(f"clients/{made.json['client_id']}", {"resource_server_identifier": "urn:nowhere"}).json["errorCode"] == "invalid_body"
