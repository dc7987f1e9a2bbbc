"""Members that deployment tools send in the JSON of a client.

A value that requires an unsupported feature is refused; other values are stored.
"""

from __future__ import annotations

from typing import Any

import pytest

from authapi.api.client_documents import client_resource
from authapi.models import Client
from identity.models import Tenant
from identity.services.organizations import create_organization, delete_organization
from identity.services.tenants import create_tenant
from tests.authapi.assertions import public_pem
from tests.management import Management

NEUTRAL: dict[str, Any] = {
    "description": "Sells things",
    "logo_uri": "https://shop.example.test/logo.png",
    "initiate_login_uri": "https://shop.example.test/start",
    "mobile": {
        "android": {"app_package_name": "com.example.shop", "sha256_cert_fingerprints": [":".join(["AB"] * 32)]},
        "ios": {"team_id": "9JA89QQLNQ", "app_bundle_identifier": "com.example.shop"},
    },
    "native_social_login": {"apple": {"enabled": False}, "facebook": {"enabled": False}},
    "fedcm_login": {"google": {"is_enabled": False}},
    "token_exchange": {"allow_any_profile_of_type": ["custom_authentication", "on_behalf_of_token_exchange"]},
    "session_transfer": {"can_create_session_transfer_token": False, "allowed_authentication_methods": [], "enforce_device_binding": "ip"},
    "token_quota": {"client_credentials": {"enforce": False, "per_day": 100, "per_hour": 10}},
    "encryption_key": {"pub": "-----BEGIN PUBLIC KEY-----", "cert": "-----BEGIN CERTIFICATE-----", "subject": "/CN=shop"},
    "sso": True,
    "cross_origin_loc": "https://shop.example.test/verify",
    "form_template": "<form>",
    "organization_discovery_methods": ["organization_name"],
    "organization_usage": "allow",
    "organization_require_behavior": "pre_login_prompt",
    "skip_non_verifiable_callback_uri_confirmation_prompt": True,
    "anonymous_sessions": {"active": False},
    "identity_assertion_authorization_grant": {"active": False},
    "third_party_security_mode": "permissive",
    "redirection_policy": "allow_always",
    "async_approval_notification_channels": ["guardian-push"],
    "client_aliases": ["https://shop.example.test/saml"],
    "signed_request_object": {"required": False, "credentials": []},
}
PROMISES: list[dict[str, Any]] = [
    {"addons": {"salesforce": {}}},
    {"addons": {"samlp": None, "aws": {"principal": "arn:aws:iam::1:saml-provider/x"}}},
    {"native_social_login": {"google": {"enabled": True}}},
    {"fedcm_login": {"google": {"is_enabled": True}}},
    {"session_transfer": {"can_create_session_transfer_token": True}},
    {"session_transfer": {"delegation": {"allow_delegated_access": True}}},
    {"token_quota": {"client_credentials": {"enforce": True, "per_day": 1}}},
    {"token_quota": {"client_credentials": {"per_hour": 1}}},
    {"custom_login_page": "<html></html>"},
    {"organization_discovery_methods": ["email"]},
    {"skip_non_verifiable_callback_uri_confirmation_prompt": False},
    {"anonymous_sessions": {"active": True}},
    {"third_party_security_mode": "strict"},
    {"redirection_policy": "open_redirect_protection"},
    {"express_configuration": {"enable_client": True}},
]
MALFORMED: list[dict[str, Any]] = [
    {"addons": {"toaster": None}},
    {"addons": []},
    {"mobile": {"android": {"sha256_cert_fingerprints": ["AB"]}}},
    {"mobile": {"windows": {}}},
    {"cross_origin_loc": "javascript:alert(1)"},
    {"cross_origin_loc": "https://user@evil.example"},
    {"encryption_key": {"pub": "-----BEGIN PRIVATE KEY-----"}},
    {"sso": "yes"},
    {"token_quota": {}},
    {"token_quota": {"client_credentials": {"per_day": 0}}},
    {"form_template": "x" * 20_001},
]


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_a_value_that_requires_an_unsupported_feature_is_refused(api: Management, promise: dict[str, Any]) -> None:
    path = f"clients/{api.post('clients', {'name': 'Shop'}).json['client_id']}"
    before = api.get(path).json
    for answer in (api.post("clients", {"name": "a", **promise}), api.patch(path, promise)):
        assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")
        assert next(iter(promise)) in answer.json["message"]
    assert api.get(path).json == before
    assert len(api.get("clients").json) == 1


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: str(body)[:60])
def test_a_value_of_the_wrong_type_is_refused(api: Management, body: dict[str, Any]) -> None:
    answer = api.post("clients", {"name": "a", **body})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")


def test_a_neutral_value_is_stored_and_returned(api: Management) -> None:
    made = api.post("clients", {"name": "Shop", **NEUTRAL})
    assert made.status == 201, made.json
    path = f"clients/{made.json['client_id']}"
    read = api.get(path).json
    assert {name: read.get(name) for name in NEUTRAL} == NEUTRAL
    assert set(api.get("clients", {"fields": ",".join(NEUTRAL)}).json[0]) == {*NEUTRAL, "tenant"}
    assert api.patch(path, {name: read[name] for name in NEUTRAL}).json | {"updated_at": None} == read | {"updated_at": None}


def test_null_removes_an_add_on_or_another_member(api: Management) -> None:
    made = api.post("clients", {"name": "Shop", "addons": {"samlp": None, "wsfed": None}}).json
    assert made["addons"] == {}
    cleared = api.patch(f"clients/{made['client_id']}", dict.fromkeys(("addons", "mobile", "form_template")))
    assert cleared.status == 200
    assert not {"addons", "mobile", "form_template"} & set(cleared.json)


def test_every_answer_contains_the_defaults(api: Management) -> None:
    defaults = {
        "is_token_endpoint_ip_header_trusted": False,
        "oidc_conformant": True,
        "sso_disabled": False,
        "cross_origin_authentication": False,
        "custom_login_page_on": True,
    }
    policy = {
        "rotation_type": "non-rotating",
        "expiration_type": "expiring",
        "leeway": 0,
        "token_lifetime": 2_592_000,
        "idle_token_lifetime": 1_296_000,
        "infinite_token_lifetime": False,
        "infinite_idle_token_lifetime": False,
    }
    made = api.post("clients", {"name": "Shop"}).json
    path = f"clients/{made['client_id']}"
    for client in (made, api.get(path).json, api.get("clients").json[0], api.patch(path, {"description": "d"}).json):
        assert {name: client[name] for name in defaults} == defaults
        assert client["refresh_token"] == policy
    sent_back = {name: made[name] for name in (*defaults, "refresh_token", "grant_types", "jwt_configuration")}
    assert api.patch(path, sent_back).status == 200
    native = api.post("clients", {"name": "App", "app_type": "native"}).json
    assert native["refresh_token"]["rotation_type"] == "rotating"


def test_refresh_tokens_without_an_expiry_are_shown_as_non_expiring(api: Management) -> None:
    policy = {"rotation_type": "rotating", "expiration_type": "non-expiring"}
    shown = api.post("clients", {"name": "Shop", "refresh_token": policy}).json["refresh_token"]
    assert (shown["infinite_token_lifetime"], shown["infinite_idle_token_lifetime"]) == (True, True)
    assert {name: shown[name] for name in policy} == policy


def test_the_older_name_of_the_logout_settings_is_accepted(api: Management) -> None:
    urls = {"backchannel_logout_urls": ["https://shop.example.test/bye"]}
    made = api.post("clients", {"name": "Shop", "oidc_backchannel_logout": urls}).json
    assert made["oidc_logout"] == urls
    assert "oidc_backchannel_logout" not in made


def test_a_client_cannot_name_a_default_organization_of_another_tenant(api: Management, tenant: Tenant) -> None:
    own = create_organization(tenant_id=tenant.pk, name="acme")
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    foreign = create_organization(tenant_id=other.pk, name="acme")
    flows = ["client_credentials"]
    made = api.post("clients", {"name": "Robot", "default_organization": {"organization_id": own.pk, "flows": flows}})
    assert made.json["default_organization"] == {"organization_id": own.pk, "flows": flows}
    path = f"clients/{made.json['client_id']}"
    for wrong in (
        {"organization_id": foreign.pk, "flows": flows},
        {"organization_id": "org_0123456789abcdef", "flows": flows},
        {"organization_id": own.pk, "flows": ["authorization_code"]},
        {"organization_id": own.pk, "flows": []},
        {"organization_id": own.pk},
    ):
        for answer in (api.patch(path, {"default_organization": wrong}), api.post("clients", {"name": "b", "default_organization": wrong})):
            assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), wrong
    assert api.get(path).json["default_organization"]["organization_id"] == own.pk
    delete_organization(tenant_id=tenant.pk, organization_id=own.pk)
    assert api.patch(path, {"description": "still here"}).status == 200
    assert "default_organization" not in api.patch(path, {"default_organization": None}).json


def test_a_credential_cannot_be_deleted_while_a_setting_names_it(api: Management, tenant: Tenant) -> None:
    pem = public_pem()
    made = api.post("clients", {"name": "Robot"}).json
    path = f"clients/{made['client_id']}"
    key = api.post(f"{path}/credentials", {"credential_type": "public_key", "pem": pem}).json["id"]
    other = api.post(f"{path}/credentials", {"credential_type": "public_key", "pem": pem, "kid": "second"}).json["id"]
    methods = {"private_key_jwt": {"credentials": [{"id": key}]}}
    signed = {"required": False, "credentials": [{"id": other}]}
    changed = api.patch(path, {"client_authentication_methods": methods, "signed_request_object": signed})
    assert changed.status == 200, changed.json
    version = Client.objects.of(tenant.pk).get(client_id=made["client_id"]).auth_version
    for used in (key, other):
        answer = api.delete(f"{path}/credentials/{used}")
        assert (answer.status, answer.json["errorCode"]) == (400, "operation_not_supported")
        assert api.get(f"{path}/credentials/{used}").status == 200
    assert Client.objects.of(tenant.pk).get(client_id=made["client_id"]).auth_version == version
    nothing = {"client_authentication_methods": None, "token_endpoint_auth_method": "client_secret_post", "signed_request_object": None}
    assert api.patch(path, nothing).status == 200
    assert [api.delete(f"{path}/credentials/{free}").status for free in (key, other, key)] == [204, 204, 204]


def test_a_new_client_cannot_name_keys_for_signed_requests(api: Management) -> None:
    for named in ({"name": "Shop"}, {"name": "Shop", "token_endpoint_auth_method": "none"}):
        answer = api.post("clients", {**named, "signed_request_object": {"required": False, "credentials": [{"id": "cred_" + "a" * 22}]}})
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")


def test_a_client_cannot_use_keys_of_another_client_for_signed_requests(api: Management) -> None:
    one, two = (api.post("clients", {"name": name}).json["client_id"] for name in ("one", "two"))
    key = api.post(f"clients/{one}/credentials", {"credential_type": "public_key", "pem": public_pem()}).json["id"]
    answer = api.patch(f"clients/{two}", {"signed_request_object": {"credentials": [{"id": key}]}})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")


def test_an_unsupported_value_that_is_already_stored_may_be_sent_back(api: Management, tenant: Tenant) -> None:
    path = f"clients/{api.post('clients', {'name': 'Old'}).json['client_id']}"
    Client.objects.of(tenant.pk).filter(name="Old").update(settings={"redirection_policy": "open_redirect_protection"})
    assert client_resource(Client.objects.of(tenant.pk).get(name="Old"))["redirection_policy"] == "open_redirect_protection"
    assert api.patch(path, {"redirection_policy": "open_redirect_protection"}).status == 200
    assert api.patch(path, {"redirection_policy": "allow_always"}).status == 200
    assert api.patch(path, {"redirection_policy": "open_redirect_protection"}).status == 400


def test_signed_requests_can_be_required_only_with_a_key(api: Management) -> None:
    path = f"clients/{api.post('clients', {'name': 'Bank'}).json['client_id']}"
    required = {"signed_request_object": {"required": True, "credentials": []}}
    assert api.patch(path, required).json["errorCode"] == "invalid_body"
    assert api.patch(path, {**required, "jwks_uri": "https://bank.example.test/keys"}).json["jwks_uri"] == "https://bank.example.test/keys"
    assert api.patch(path, {"jwks_uri": None}).json["errorCode"] == "invalid_body"


@pytest.mark.parametrize("address", ["ftp://bank.example.test/keys", "https://user@bank.example.test/", "https:///keys", "keys", 7])
def test_the_address_of_a_key_set_must_be_a_web_address(api: Management, address: object) -> None:
    assert api.post("clients", {"name": "Bank", "jwks_uri": address}).json["errorCode"] == "invalid_body"
