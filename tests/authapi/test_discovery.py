"""Discovery lists exactly the endpoints and features that work, on the requested host."""

from __future__ import annotations

import pytest
from django.urls import is_valid_path

from authapi.models import TenantSettings
from authapi.protocols.oauth.engine import server
from authapi.services.tenant_settings import update_tenant_settings
from authapi.tokens.profile_claims import profile_claims
from authapi.views import HOT_ENDPOINTS
from identity.models import Tenant
from tests.authapi.asgi_client import ask_token, get, send
from tests.authapi.certificates import edge_key
from tests.authapi.memory import forget_all
from tests.factories.logins import login_of, some_user, web_client

DOCUMENTS = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")


@pytest.mark.parametrize("path", DOCUMENTS)
def test_the_oauth_and_the_openid_discovery_document_are_the_same(tenant: Tenant, path: str) -> None:
    issuer = f"http://{tenant.pk}.example.test/"
    document = get(tenant, path).json()
    assert {name: document[name].replace(issuer, "/") for name in document if name.endswith(("_endpoint", "_uri"))} == {
        "authorization_endpoint": "/authorize",
        "token_endpoint": "/oauth/token",
        "userinfo_endpoint": "/userinfo",
        "revocation_endpoint": "/oauth/revoke",
        "device_authorization_endpoint": "/oauth/device/code",
        "backchannel_authentication_endpoint": "/bc-authorize",
        "pushed_authorization_request_endpoint": "/oauth/par",
        "mfa_challenge_endpoint": "/mfa/challenge",
        "end_session_endpoint": "/oidc/logout",
        "global_token_revocation_endpoint": "/oauth/global-token-revocation/connection/{connectionName}",
        "jwks_uri": "/.well-known/jwks.json",
    }
    assert document["issuer"] == issuer
    methods = ["client_secret_basic", "client_secret_post", "private_key_jwt", "none"]
    assert document["token_endpoint_auth_methods_supported"] == document["revocation_endpoint_auth_methods_supported"] == methods
    assert document["response_modes_supported"] == ["query", "fragment", "form_post"]
    assert document["id_token_signing_alg_values_supported"] == ["HS256", "RS256", "PS256", "RS512"]
    assert document["authorization_response_iss_parameter_supported"] is True
    assert "mtls_endpoint_aliases" not in document


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_url_in_the_discovery_document_exists(tenant: Tenant, path: str) -> None:
    document = get(tenant, path).json()
    addresses = [value.replace(document["issuer"], "/") for name, value in document.items() if name.endswith(("_endpoint", "_uri"))]
    assert addresses
    for address in addresses:
        assert address.replace("{connectionName}", "<str:name>") in HOT_ENDPOINTS or is_valid_path(address)


def test_the_listed_grants_are_exactly_the_supported_grants(tenant: Tenant) -> None:
    listed = set(get(tenant, DOCUMENTS[0]).json()["grant_types_supported"])
    assert listed == {*server().grant_types.keys(), "implicit"}
    assert ask_token(tenant, {"grant_type": "implicit"}).json()["error"] == "unsupported_grant_type"


def test_every_listed_scope_can_be_granted_and_every_listed_claim_can_be_returned(tenant: Tenant) -> None:
    document = get(tenant, DOCUMENTS[0]).json()
    registered, user = web_client(tenant), some_user(tenant)
    login = login_of(tenant, registered, user, scope=" ".join(document["scopes_supported"]))
    assert login.scopes == tuple(document["scopes_supported"])
    told = {"sub", *profile_claims(user, document["scopes_supported"])}
    assert told <= set(document["claims_supported"])


def test_a_tenant_can_remove_the_logout_endpoint_from_the_discovery_document(tenant: Tenant) -> None:
    changes = {"oidc_logout": {"rp_logout_end_session_endpoint_discovery": False}}
    update_tenant_settings(tenant_id=tenant.pk, changes=changes)
    forget_all()
    assert "end_session_endpoint" not in get(tenant, DOCUMENTS[0]).json()


def test_a_tenant_can_switch_pushed_requests_off_or_require_them(tenant: Tenant) -> None:
    assert get(tenant, DOCUMENTS[0]).json()["require_pushed_authorization_requests"] is False
    update_tenant_settings(tenant_id=tenant.pk, changes={"require_pushed_authorization_requests": True})
    forget_all()
    assert get(tenant, DOCUMENTS[0]).json()["require_pushed_authorization_requests"] is True
    off = {"require_pushed_authorization_requests": False, "pushed_authorization_requests_supported": False}
    update_tenant_settings(tenant_id=tenant.pk, changes=off)
    forget_all()
    assert not [name for name in get(tenant, DOCUMENTS[0]).json() if "pushed" in name]


def test_a_host_with_a_key_for_its_tls_proxy_lists_urls_for_client_certificates(tenant: Tenant) -> None:
    edge_key(tenant)
    document = get(tenant, DOCUMENTS[0]).json()
    edge = f"http://mtls.{tenant.pk}.example.test/"
    assert document["mtls_endpoint_aliases"] == {
        "token_endpoint": f"{edge}oauth/token",
        "userinfo_endpoint": f"{edge}userinfo",
        "pushed_authorization_request_endpoint": f"{edge}oauth/par",
        "device_authorization_endpoint": f"{edge}oauth/device/code",
        "backchannel_authentication_endpoint": f"{edge}bc-authorize",
    }
    assert {"tls_client_auth", "self_signed_tls_client_auth"} <= set(document["token_endpoint_auth_methods_supported"])


def test_the_issuer_is_the_registered_host_in_lower_case(tenant: Tenant) -> None:
    assert get(tenant, DOCUMENTS[0], host=f"{tenant.pk.upper()}.EXAMPLE.test.").json()["issuer"] == f"http://{tenant.pk}.example.test/"


@pytest.mark.parametrize("host", ["", "elsewhere.example.test", "a b", "x" * 300, "t.example.test:99999999", "\x00", "évil.test"])
def test_a_request_to_an_unknown_host_gets_404(tenant: Tenant, host: str) -> None:
    assert get(tenant, DOCUMENTS[0], host=host or " ").status == 404


def test_a_forwarded_host_header_is_ignored(tenant: Tenant) -> None:
    headers = {"X-Forwarded-Host": "attacker.example.test", "Forwarded": "host=attacker.example.test"}
    answer = send(HOT_ENDPOINTS[DOCUMENTS[0]], "GET", host=f"{tenant.pk}.example.test", headers=headers)
    assert "attacker" not in answer.body.decode()


def test_answers_can_be_cached_for_a_minute_and_read_by_any_script(tenant: Tenant) -> None:
    answer = get(tenant, "/.well-known/jwks.json")
    assert answer.headers["cache-control"] == "public, max-age=60"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["x-ratelimit-remaining"] == "999"


def test_a_head_request_gets_the_headers_of_a_get_request(tenant: Tenant) -> None:
    answer = send(HOT_ENDPOINTS[DOCUMENTS[0]], "HEAD", host=f"{tenant.pk}.example.test")
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["content-length"]) > 100


def test_a_post_request_is_refused_with_405(tenant: Tenant) -> None:
    answer = send(HOT_ENDPOINTS[DOCUMENTS[0]], "POST", host=f"{tenant.pk}.example.test")
    assert (answer.status, answer.headers["allow"]) == (405, "GET")


def test_the_discovery_document_lists_only_values_that_work_for_every_client(tenant: Tenant) -> None:
    TenantSettings(tenant=tenant, values={"acr_values_supported": ["urn:example:strong"]}).save()
    forget_all()
    document = get(tenant, DOCUMENTS[0]).json()
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["prompt_values_supported"] == ["consent", "create", "login", "none", "select_account"]
    # An older version of the service has stored this authentication context, which no login can meet. So the document does not list it.
    assert "acr_values_supported" not in document
    assert document["dpop_signing_alg_values_supported"] == ["ES256", "PS256", "Ed25519", "ES384", "RS256"]
    assert "address" not in document["scopes_supported"]
