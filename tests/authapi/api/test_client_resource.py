"""Clients over the management interface: creating, reading, changing, listing and deleting them, and their secrets."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.models import Client
from identity.models import Tenant
from tests.deadlines import eventually
from tests.management import Management, request, token_of

TOKEN_URL = "/oauth/token"


def token_status(tenant: Tenant, client: dict[str, Any], secret: str) -> int:
    """Request a token as the client, and return the status."""
    host = f"{tenant.pk}.example.test"
    form = {
        "grant_type": "client_credentials",
        "client_id": client["client_id"],
        "client_secret": secret,
        "audience": f"http://{host}/api/v2/",
    }
    body = b"&".join(f"{name}={value}".encode() for name, value in form.items())
    headers = {"host": host, "content-type": "application/x-www-form-urlencoded", "content-length": str(len(body))}
    return request("POST", TOKEN_URL, "", headers, body).status


def test_the_secret_of_a_client_is_shown_once(api: Management, tenant: Tenant) -> None:
    made = api.post("clients", {"name": "Shop", "callbacks": ["https://shop.example.test/in", "com.shop.app:/in"]})
    assert made.status == 201
    client = made.json
    secret = client.pop("client_secret")
    assert len(secret) == 64
    assert client["tenant"] == tenant.pk
    assert client["callbacks"] == ["https://shop.example.test/in", "com.shop.app:/in"]
    assert client["grant_types"] == ["authorization_code", "refresh_token", "client_credentials"]
    assert client["jwt_configuration"] == {"alg": "RS256", "lifetime_in_seconds": 36_000, "secret_encoded": False}
    assert api.get(f"clients/{client['client_id']}").json == client
    assert secret.encode() not in api.get("clients").body


def test_a_native_client_is_public_and_has_no_secret(api: Management) -> None:
    made = api.post("clients", {"name": "App", "app_type": "native"}).json
    assert made["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in made
    assert api.post(f"clients/{made['client_id']}/rotate-secret").json["errorCode"] == "operation_not_supported"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "<b>"},
        {"name": "a", "app_type": "toaster"},
        {"name": "a", "callbacks": ["https://a.example.test/#in"]},
        {"name": "a", "callbacks": ["javascript:alert(1)"]},
        {"name": "a", "callbacks": ["/in"]},
        {"name": "a", "callbacks": "https://a.example.test"},
        {"name": "a", "client_metadata": {"k": "v" * 256}},
        {"name": "a", "client_metadata": {str(number): "" for number in range(11)}},
        {"name": "a", "refresh_token": {"rotation_type": "rotating"}},
        {"name": "a", "client_secret": "s" * 64},
        {"name": "a", "client_id": "abc"},
        {"name": "a", "is_global": True},
        {"name": "a", "is_first_party": False, "organization_usage": "allow"},
        {"name": "a", "app_type": "spa", "grant_types": ["client_credentials"]},
    ],
)
def test_an_invalid_body_creates_no_client(api: Management, body: object) -> None:
    answer = api.post("clients", body)
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert api.get("clients").json == []


@pytest.mark.parametrize(
    "promise",
    [
        {"jwt_configuration": {"secret_encoded": True}},
        {"grant_types": ["urn:ietf:params:oauth:grant-type:saml2-bearer"]},
        {"grant_types": ["authorization_code", "urn:ietf:params:oauth:grant-type:jwt-bearer"]},
        {"oidc_logout": {"backchannel_logout_initiators": {"mode": "custom", "selected_initiators": ["profile-changed"]}}},
    ],
)
def test_a_setting_that_the_service_does_not_support_is_refused(api: Management, promise: dict[str, Any]) -> None:
    answer = api.post("clients", {"name": "a", **promise})
    assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")


def test_supported_values_and_neutral_values_are_returned(api: Management) -> None:
    neutral = {
        "require_pushed_authorization_requests": False,
        "compliance_level": "none",
        "cross_origin_authentication": False,
        "custom_login_page_on": True,
        "sso_disabled": True,
        "allowed_clients": [],
        "allowed_origins": ["https://app.example.com", "https://*.preview.example.com"],
        "updated_at_as_text": True,
        "grant_types": ["authorization_code", "implicit", "refresh_token", "http://auth0.com/oauth/grant-type/password-realm"],
        "oidc_logout": {"backchannel_logout_initiators": {"mode": "custom", "selected_initiators": ["account-deactivated"]}},
    }
    made = api.post("clients", {"name": "a", **neutral}).json
    assert {name: made.get(name) for name in neutral} == neutral
    assert api.patch(f"clients/{made['client_id']}", {name: made[name] for name in neutral}).status == 200


def test_features_for_old_clients_can_be_switched_on(api: Management) -> None:
    grants = [f"http://auth0.com/oauth/legacy/grant-type/{name}" for name in ("ro", "ro/jwt-bearer", "access_token")]
    grants += [f"http://auth0.com/oauth/legacy/grant-type/delegation/{name}" for name in ("id_token", "refresh_token")]
    wanted = {"grant_types": grants, "cross_origin_authentication": True, "allowed_clients": ["abc"]}
    assert api.post("clients", {"name": "Plain"}).json["cross_origin_authentication"] is False
    made = api.post("clients", {"name": "Old", **wanted}).json
    assert {name: made[name] for name in wanted} == wanted


def test_an_existing_grant_type_of_a_client_may_be_sent_back(api: Management, tenant: Tenant) -> None:
    path = f"clients/{api.post('clients', {'name': 'Old'}).json['client_id']}"
    unserved = "urn:ietf:params:oauth:grant-type:saml2-bearer"
    Client.objects.of(tenant.pk).filter(name="Old").update(grant_types=["authorization_code", unserved])
    assert api.patch(path, {"grant_types": [unserved]}).status == 200
    assert api.patch(path, {"grant_types": ["authorization_code"]}).status == 200
    assert api.patch(path, {"grant_types": [unserved]}).status == 400


@pytest.mark.parametrize(
    "body",
    [
        {"callbacks": ["http://*.example.com/back"]},
        {"callbacks": ["https://*.co.uk/back"]},
        {"callbacks": ["https://app.example.com/*"]},
        {"allowed_logout_urls": ["https://*/bye"]},
        {"allowed_origins": ["https://a.*.example.com"]},
        {"oidc_logout": {"backchannel_logout_initiators": {"mode": "custom", "selected_initiators": ["something-else"]}}},
    ],
)
def test_unknown_values_are_refused(api: Management, body: dict[str, Any]) -> None:
    answer = api.post("clients", {"name": "a", **body})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")


def test_a_change_replaces_whole_lists_but_merges_metadata(api: Management) -> None:
    body = {"name": "Shop", "description": "d", "client_metadata": {"a": "1", "b": "2"}, "web_origins": ["https://a.example.test"]}
    path = f"clients/{api.post('clients', body).json['client_id']}"
    changes = {"client_metadata": {"a": None, "c": "3"}, "description": None, "web_origins": ["https://b.example.test"]}
    changed = api.patch(path, changes).json
    assert changed["client_metadata"] == {"b": "2", "c": "3"}
    assert "description" not in changed
    assert changed["web_origins"] == ["https://b.example.test"]
    assert api.patch(path, {}).json == api.get(path).json
    assert api.get(path).json["name"] == "Shop"


def test_an_alias_can_name_only_one_client(api: Management) -> None:
    assert api.post("clients", {"name": "a", "client_aliases": ["urn:a", "urn:b"]}).status == 201
    assert api.post("clients", {"name": "b", "client_aliases": ["urn:b"]}).status == 409
    other = api.post("clients", {"name": "b", "client_aliases": ["urn:c"]}).json["client_id"]
    assert api.patch(f"clients/{other}", {"client_aliases": ["urn:a"]}).status == 409
    assert api.patch(f"clients/{other}", {"client_aliases": ["urn:c", "urn:d"]}).status == 200


def test_a_new_secret_replaces_the_old_secret(api: Management, tenant: Tenant) -> None:
    made = api.post("clients", {"name": "Robot", "app_type": "non_interactive"}).json
    grant = {"client_id": made["client_id"], "audience": f"http://{tenant.pk}.example.test/api/v2/", "scope": ["read:users"]}
    assert api.post("client-grants", grant).status == 201
    assert token_status(tenant, made, made["client_secret"]) == 200
    rotated = api.post(f"clients/{made['client_id']}/rotate-secret")
    assert rotated.status == 200
    assert (token_status(tenant, made, made["client_secret"]), token_status(tenant, made, rotated.json["client_secret"])) == (401, 200)
    chosen = "chosen-by-the-caller-" + "x" * 20
    assert "client_secret" not in api.patch(f"clients/{made['client_id']}", {"client_secret": chosen}).json
    assert (token_status(tenant, made, rotated.json["client_secret"]), token_status(tenant, made, chosen)) == (401, 200)
    assert api.patch(f"clients/{made['client_id']}", {"client_secret": "short"}).status == 400


def test_tokens_become_invalid_when_their_client_loses_the_client_grant(api: Management, tenant: Tenant) -> None:
    made = api.post("clients", {"name": "Robot", "app_type": "non_interactive"}).json
    host = f"{tenant.pk}.example.test"
    grant = {"client_id": made["client_id"], "audience": f"http://{host}/api/v2/", "scope": ["read:users"]}
    api.post("client-grants", grant)
    token = token_of(host, Client.objects.of(tenant.pk).get(client_id=made["client_id"]), made["client_secret"])
    bearer = {"authorization": f"Bearer {token}"}
    assert api.call("GET", "users", headers=bearer).status == 200
    assert api.patch(f"clients/{made['client_id']}", {"name": "Robby"}).status == 200
    assert api.call("GET", "users", headers=bearer).status == 200
    assert api.patch(f"clients/{made['client_id']}", {"grant_types": ["authorization_code"]}).status == 200
    eventually(lambda: api.call("GET", "users", headers=bearer).status == 401)


def test_setting_a_secret_requires_its_own_scope(api: Management, tenant: Tenant) -> None:
    path = f"clients/{api.post('clients', {'name': 'Robot'}).json['client_id']}"
    writer, keeper = Management(tenant, scope="update:clients"), Management(tenant, scope="update:client_keys")
    assert writer.patch(path, {"client_secret": "x" * 64}).status == 403
    assert keeper.patch(path, {"name": "Robby"}).status == 403
    assert keeper.patch(path, {"client_secret": "x" * 64}).status == 200
    assert writer.post(f"{path}/rotate-secret").status == 403


def test_a_global_client_is_listed_on_request_and_cannot_be_changed(api: Management) -> None:
    assert api.get("clients").json == []
    (own,) = api.get("clients", {"is_global": "true"}).json
    assert (own["client_id"], own["global"]) == (api.client.client_id, True)
    for method, path in (("PATCH", ""), ("DELETE", ""), ("POST", "/rotate-secret")):
        answer = api.call(method, f"clients/{own['client_id']}{path}", body={} if method == "PATCH" else None)
        assert answer.status == 403, method


def test_lists_contain_times_only_if_the_request_selects_the_time_fields(api: Management) -> None:
    client = api.post("clients", {"name": "Shop"}).json
    assert {"created_at", "updated_at"} <= client.keys()
    assert api.get("clients").json[0].keys() & {"created_at", "updated_at"} == set()
    assert api.get("clients", {"fields": "client_id,updated_at"}).json[0].keys() == {"client_id", "tenant", "updated_at"}


def test_lists_of_clients_support_filters_and_pages_and_a_choice_of_fields(api: Management, tenant: Tenant) -> None:
    for name, kind in (("a", "spa"), ("b", "native"), ("c", "regular_web")):
        api.post("clients", {"name": name, "app_type": kind})
    api.post("clients", {"name": "d", "is_first_party": False})

    def names(query: dict[str, str]) -> list[str]:
        return [client["name"] for client in api.get("clients", query).json]

    assert names({}) == ["a", "b", "c", "d"]
    assert names({"app_type": "spa,native"}) == ["a", "b"]
    assert names({"is_first_party": "false"}) == ["d"]
    assert api.get("clients", {"app_type": "toaster"}).status == 400
    searched = api.get("clients", {"q": "client_grant.organization_id:org"}).json
    assert searched["errorCode"] == "operation_not_supported"
    assert "filter by app_type, is_first_party and is_global" in searched["message"]
    assert api.get("clients", {"fields": "name", "per_page": "1"}).json == [{"tenant": tenant.pk, "name": "a"}]
    assert api.get("clients", {"include_totals": "true", "per_page": "3"}).json["total"] == 4
    taken = api.get("clients", {"take": "3"}).json
    assert [client["name"] for client in api.get("clients", {"take": "3", "from": taken["next"]}).json["clients"]] == ["d"]
    summary = Management(tenant, scope="read:client_summary").get("clients").json[0]
    assert summary == {
        "client_id": summary["client_id"],
        "tenant": tenant.pk,
        "name": "a",
        "app_type": "spa",
        "is_first_party": True,
        "global": False,
    }


def test_a_deleted_client_is_not_found_and_a_second_delete_returns_204(api: Management) -> None:
    path = f"clients/{api.post('clients', {'name': 'Shop'}).json['client_id']}"
    assert [api.delete(path).status for _ in range(2)] == [204, 204]
    for answer in (api.get(path), api.patch(path, {}), api.post(f"{path}/rotate-secret"), api.get(f"{path}/connections")):
        assert (answer.status, answer.json["errorCode"]) == (404, "inexistent_client")


def test_a_client_can_be_created_from_a_form(api: Management) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    body = b"name=Shop&callbacks=https%3A%2F%2Fa.example.test&callbacks=https%3A%2F%2Fb.example.test&client_metadata[a]=b"
    made = api.call("POST", "clients", body=body, headers=headers)
    assert made.status == 201
    assert (made.json["callbacks"], made.json["client_metadata"]) == (["https://a.example.test", "https://b.example.test"], {"a": "b"})
