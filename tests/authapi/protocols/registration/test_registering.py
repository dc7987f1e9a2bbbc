"""`POST /oidc/register` (RFC 7591): required tokens, stored metadata, and refusals with their texts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from joserfc.jwk import RSAKey

from authapi.edge.buckets import Bucket
from authapi.expiry import drop_ended
from authapi.grants.device_code import GRANT as DEVICE_GRANT
from authapi.models import AdministrativeLine, Client, ClientCredential, InitialAccessToken
from authapi.services.initial_tokens import revoke_initial_token
from authapi.views import HOT_ENDPOINTS
from identity.models import Tenant
from identity.services.tenants import create_tenant
from tests.authapi.asgi_client import FORM, ask_token, get, send
from tests.authapi.assertions import Signer, private_key
from tests.authapi.certificates import certificate
from tests.authapi.memory import forget_all
from tests.authapi.protocols.registration.conftest import CALLBACK, Door, initial_token, open_registration
from tests.factories.authapi import Registered
from tests.factories.models.authapi import InitialAccessTokenFactory

LEGACY = "http://auth0.com/oauth/legacy/grant-type/ro"


def key_set(name: str = "registered", **changes: Any) -> dict[str, Any]:
    # `kty` comes first: the id of a test contains the beginning of this text and must be the same in each process. The numbers of the key
    # differ in each process.
    return {"keys": [{"kty": "RSA", **RSAKey.import_key(private_key(name)).as_dict(private=False), "kid": name, **changes}]}


def stored(door: Door) -> Client:
    return Client.objects.of(door.tenant.pk).get(client_id=door.answer["client_id"])


# --- Access -----------------------------------------------------------------------------------------------------------


def test_registration_is_off_until_a_tenant_switches_it_on(tenant: Tenant) -> None:
    for method in ("POST", "GET", "PUT", "DELETE"):
        answer = Door(tenant).send(method)
        assert (answer.status, answer.json()["error"]) == (404, "endpoint_disabled")
    assert "registration_endpoint" not in get(tenant, "/.well-known/openid-configuration").json()


def test_discovery_names_the_endpoint_if_registration_is_on(door: Door) -> None:
    document = get(door.tenant, "/.well-known/openid-configuration").json()
    assert document["registration_endpoint"] == f"{document['issuer']}oidc/register"


def test_an_initial_access_token_is_required_by_default(tenant: Tenant) -> None:
    open_registration(tenant, needs_token=True)
    door = Door(tenant)
    refused = door.ask()
    assert (refused.status, refused.json()["error"]) == (401, "invalid_token")
    assert refused.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    door.token = initial_token(tenant, name="Partner")
    door.register()
    line = AdministrativeLine.objects.of(tenant.pk).get(client_id=door.answer["client_id"])
    assert (line.type, line.description, line.details["initial_access_token"]) == ("sapi", "Register a client", "Partner")
    assert door.token not in str(line.details)
    assert InitialAccessToken.objects.of(tenant.pk).get().use_count == 1


@pytest.mark.parametrize("why", ["unknown", "expired", "revoked", "used up", "of another tenant"])
def test_an_invalid_initial_access_token_is_refused(tenant: Tenant, why: str) -> None:
    open_registration(tenant, needs_token=True)
    door = Door(tenant, initial_token(tenant, most_uses=1))
    row = InitialAccessToken.objects.of(tenant.pk).get()
    match why:
        case "unknown":
            door.token = "guess"
        case "expired":
            InitialAccessToken.objects.of(tenant.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
        case "revoked":
            revoke_initial_token(tenant_id=tenant.pk, token_id=row.pk)
        case "used up":
            door.register()
        case _:
            name = f"{tenant.pk}-b"
            door.token = initial_token(create_tenant(tenant_id=name, name=name, host=f"{name}.example.test"))
    answer = door.ask()
    assert (answer.status, answer.json()["error_description"]) == (401, "The initial access token is invalid.")
    assert Client.objects.of(tenant.pk).count() == (1 if why == "used up" else 0)


def test_a_refused_registration_does_not_use_up_a_token(tenant: Tenant) -> None:
    open_registration(tenant, needs_token=True)
    door = Door(tenant, initial_token(tenant, most_uses=1))
    assert door.ask(token_endpoint_auth_method="private_key_jwt", jwks={"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}).status == 400
    door.register()


def test_one_ip_address_can_register_a_limited_number_of_clients(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("authapi.views.registration.REGISTRATIONS_OF_PLACE", Bucket(f"few_{door.tenant.pk}", 1, 3600.0))
    assert [door.ask().status for _ in range(2)] == [201, 429]
    assert door.send("POST", address="192.0.2.9", redirect_uris=[CALLBACK]).status == 201


def test_requests_with_invalid_tokens_do_not_use_up_the_limit_for_valid_tokens(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("authapi.views.registration.REGISTRATIONS_OF_TENANT", Bucket(f"one_{tenant.pk}", 1, 3600.0))
    open_registration(tenant, needs_token=True)
    door = Door(tenant, "guess")
    assert [door.ask().status for _ in range(3)] == [401] * 3
    door.token = initial_token(tenant)
    assert [door.ask().status for _ in range(2)] == [201, 429]


def test_a_tenant_has_a_limited_number_of_registered_clients(door: Door, settings: Any) -> None:
    settings.REGISTERED_CLIENTS_MAX = 1
    assert [door.ask().status for _ in range(2)] == [201, 403]


# --- Metadata ---------------------------------------------------------------------------------------------------------


def test_an_application_with_minimal_metadata_gets_the_defaults_of_rfc_7591(door: Door) -> None:
    answer = door.register()
    assert {name: answer[name] for name in ("client_name", "redirect_uris", "grant_types", "response_types")} == {
        "client_name": "Films",
        "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code"],
        "response_types": ["code"],
    }
    assert (answer["token_endpoint_auth_method"], answer["client_secret_expires_at"]) == ("client_secret_basic", 0)
    client = stored(door)
    assert (client.is_first_party, client.is_global, client.is_self_registered, client.app_type) == (False, False, True, "regular_web")
    assert client.secret_matches(answer["client_secret"])
    kept = str(Client.objects.of(door.tenant.pk).values().get(pk=client.pk))
    for secret in (answer["client_secret"], answer["registration_access_token"]):
        assert secret not in kept


def test_every_supported_member_is_returned(door: Door) -> None:
    sent = {
        "client_name": "Films at home",
        "application_type": "native",
        "redirect_uris": ["com.example.films:/back", "http://127.0.0.1/back", CALLBACK],
        "grant_types": ["authorization_code", "refresh_token", DEVICE_GRANT],
        "response_types": ["code"],
        "token_endpoint_auth_method": "client_secret_post",
        "id_token_signed_response_alg": "HS256",
        "logo_uri": "https://app.example.test/logo.png",
        "initiate_login_uri": "https://app.example.test/login",
        "post_logout_redirect_uris": ["https://app.example.test/bye"],
        "backchannel_logout_uri": "https://app.example.test/logout",
        "frontchannel_logout_uri": "https://app.example.test/frame",
        "frontchannel_logout_session_required": True,
        "require_pushed_authorization_requests": True,
        "dpop_bound_access_tokens": True,
        "jwks_uri": "https://app.example.test/keys",
        "authorization_details_types": ["payment", "https://schema.example.test/account"],
        "require_signed_request_object": True,
    }
    answer = door.register(**sent, unknown_member=[{"a": 1}], scope="openid admin", contacts=["a@example.test"])
    assert {name: answer[name] for name in sent} == sent
    assert not {"unknown_member", "scope", "contacts"} & answer.keys()
    settings = stored(door).settings
    assert settings["require_proof_of_possession"] is True
    assert settings["oidc_logout"] == {"backchannel_logout_urls": ["https://app.example.test/logout"]}
    assert settings["signed_request_object"] == {"required": True}


def test_id_tokens_are_signed_with_the_registered_algorithm(door: Door) -> None:
    assert door.register(id_token_signed_response_alg="PS256")["id_token_signed_response_alg"] == "PS256"
    assert stored(door).algorithm == "PS256"


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ({"token_endpoint_auth_method": "none"}, "spa"),
        ({"redirect_uris": ["http://localhost:3334/back"], "token_endpoint_auth_method": "none"}, "native"),
        ({"redirect_uris": ["com.example.app:/back"]}, "native"),
        ({"redirect_uris": None, "grant_types": ["client_credentials"], "client_name": None}, "regular_web"),
    ],
    ids=["a web page", "a loopback tool", "a mobile application", "a machine"],
)
def test_the_application_type_is_derived_from_the_redirect_uris(door: Door, members: dict[str, Any], kind: str) -> None:
    door.register(**members)
    assert stored(door).app_type == kind
    assert ("client_secret" in door.answer) == (members.get("token_endpoint_auth_method") != "none")


def test_a_client_with_a_key_authenticates_with_the_key(door: Door) -> None:
    answer = door.register(
        redirect_uris=None, grant_types=["client_credentials"], token_endpoint_auth_method="private_key_jwt", jwks=key_set()
    )
    assert "client_secret" not in answer
    assert answer["jwks"]["keys"][0]["kid"] == "registered"
    signer = Signer(door.tenant, Registered(stored(door), ""))
    form = signer.form(signer.assertion(key="registered"), audience="https://nowhere.example.test")
    # The client is authenticated. Without a client grant from an administrator, the client has no access to the API.
    assert ask_token(door.tenant, form).json()["error_description"].startswith("Service not enabled")
    wrong = ask_token(door.tenant, signer.form(signer.assertion(key="other"))).json()
    assert (wrong["error"], wrong["error_description"]) == ("access_denied", "Unauthorized")


def test_a_certificate_is_registered_by_its_subject_or_by_the_certificate_itself(door: Door) -> None:
    named = door.register(token_endpoint_auth_method="tls_client_auth", tls_client_auth_subject_dn="CN=client,OU=Pay\\, ments,C=AT")
    assert named["tls_client_auth_subject_dn"] == "CN=client,OU=Pay\\, ments,C=AT"
    pem = certificate().replace("-----BEGIN CERTIFICATE-----", "").replace("-----END CERTIFICATE-----", "").replace("\n", "")
    door.register(token_endpoint_auth_method="self_signed_tls_client_auth", jwks=key_set(x5c=[pem]))
    assert ClientCredential.objects.of(door.tenant.pk).filter(client=stored(door)).get().type == "x509_cert"


# --- Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "http://app.example.test/callback",
        "https://*.example.test/callback",
        "https://app.example.test/callback#part",
        "https://ada@app.example.test/callback",
        "https://app.example.test\\@evil.example/",
        "https://app.example.test/a b",
        "javascript:alert(1)",
        "data:text/html,x",
        "myapp://back",
        "https:///callback",
        "/callback",
        "",
        "https://app.example.test/\u200b",
    ],
)
def test_an_unsafe_url_is_refused(door: Door, address: str) -> None:
    answer = door.ask(redirect_uris=[address])
    assert (answer.status, answer.json()["error"]) == (400, "invalid_redirect_uri")
    assert not Client.objects.of(door.tenant.pk).exists()


@pytest.mark.parametrize(
    "redirects", [None, [], "https://app.example.test/", [1], [CALLBACK] * 21], ids=["missing", "empty", "text", "number", "many"]
)
def test_a_client_with_logins_must_register_redirect_uris(door: Door, redirects: Any) -> None:
    assert door.ask(redirect_uris=redirects).json()["error"] == "invalid_redirect_uri"


def test_a_web_application_cannot_register_a_loopback_address(door: Door) -> None:
    assert door.ask(application_type="web", redirect_uris=["http://127.0.0.1/back"]).json()["error"] == "invalid_redirect_uri"


@pytest.mark.parametrize(
    "members",
    [
        {"grant_types": ["password"]},
        {"grant_types": ["implicit"]},
        {"grant_types": [LEGACY]},
        {"grant_types": ["refresh_token"]},
        {"grant_types": "authorization_code"},
        {"grant_types": ["client_credentials"], "token_endpoint_auth_method": "none", "redirect_uris": []},
        {"response_types": ["id_token"]},
        {"response_types": []},
        {"grant_types": ["client_credentials"], "response_types": ["code"]},
        {"token_endpoint_auth_method": "client_secret_jwt"},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": "private_key_jwt", "jwks_uri": "https://app.example.test/keys"},
        {"token_endpoint_auth_method": "tls_client_auth"},
        {"token_endpoint_auth_method": "tls_client_auth", "tls_client_auth_san_dns": "app.example.test"},
        {"token_endpoint_auth_method": "tls_client_auth", "tls_client_auth_subject_dn": "nothing"},
        {"token_endpoint_auth_method": "self_signed_tls_client_auth", "jwks": {"keys": [{"kty": "RSA", "x5c": ["!"]}]}},
        {"jwks": {"keys": [{"kty": "EC", "crv": "P-256", "x": "x", "y": "y"}]}},
        {"jwks": {"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB", "d": "AQAB"}]}},
        {"jwks": key_set(e="B" * 300)},
        {"jwks": {"keys": []}},
        {"jwks": [1]},
        {"jwks_uri": "http://app.example.test/keys"},
        {"require_signed_request_object": True},
        {"require_pushed_authorization_requests": True, "token_endpoint_auth_method": "none"},
        {"require_pushed_authorization_requests": "true"},
        {"tls_client_certificate_bound_access_tokens": True},
        {"id_token_signed_response_alg": "none"},
        {"id_token_signed_response_alg": "HS256", "token_endpoint_auth_method": "none"},
        {"id_token_encrypted_response_alg": "RSA-OAEP"},
        {"userinfo_signed_response_alg": "RS256"},
        {"subject_type": "pairwise"},
        {"default_max_age": 60},
        {"logo_uri": "http://app.example.test/logo.png"},
        {"logo_uri": "javascript:alert(1)"},
        {"backchannel_logout_uri": "http://app.example.test/logout"},
        {"frontchannel_logout_uri": "https://elsewhere.example.test/logout"},
        {"frontchannel_logout_uri": f"https://app.example.test/{'a' * 2048}"},
        {"frontchannel_logout_session_required": "yes"},
        {"post_logout_redirect_uris": ["https://*.example.test/"]},
        {"client_name": "<b>Bank</b>"},
        {"client_name": "a" * 256},
        {"client_name": "\u202eknaB"},
        {"client_name": 1},
        {"application_type": "browser"},
        {"authorization_details_types": "payment"},
        {"authorization_details_types": ["two words"]},
    ],
    ids=lambda members: ",".join(f"{name}={str(value)[:30]}" for name, value in members.items()),
)
def test_unsupported_metadata_is_refused_with_an_explanation(door: Door, members: dict[str, Any], settings: Any) -> None:
    settings.OUTBOUND_ALLOW_HTTP = False
    answer = door.ask(**members)
    assert (answer.status, answer.json()["error"]) == (400, "invalid_client_metadata"), answer.body
    assert answer.json()["error_description"].endswith((".", "}"))
    assert not Client.objects.of(door.tenant.pk).exists()


def test_a_private_key_is_refused_with_a_warning_that_it_is_now_exposed(door: Door) -> None:
    assert "Create new keys" in door.ask(jwks=key_set(d="AQAB")).json()["error_description"]


def test_a_software_statement_is_refused(door: Door) -> None:
    assert door.ask(software_statement="a.b.c").json()["error"] == "invalid_software_statement"


@pytest.mark.parametrize("sent", [b"{", b"[]", b'{"client_name": "a\\u0000b"}'], ids=["invalid JSON", "a JSON list", "a NUL character"])
def test_an_invalid_body_is_refused(door: Door, sent: bytes) -> None:
    host = f"{door.tenant.pk}.example.test"
    answer = send(HOT_ENDPOINTS["/oidc/register"], "POST", host=host, headers={"Content-Type": "application/json"}, chunks=(sent,))
    assert answer.json()["error"] == "invalid_client_metadata"
    assert (
        send(HOT_ENDPOINTS["/oidc/register"], "POST", host=host, headers={"Content-Type": FORM}).json()["error"]
        == "invalid_client_metadata"
    )


@pytest.mark.parametrize(
    "members", [{"is_first_party": True}, {"is_global": True}, {"client_id": "chosen"}, {"client_secret": "chosen" * 10}, {"settings": {}}]
)
def test_members_that_only_administrators_can_set_are_ignored(door: Door, members: dict[str, Any]) -> None:
    answer = door.register(**members)
    client = stored(door)
    assert (client.is_first_party, client.is_global) == (False, False)
    assert answer["client_id"] != "chosen"
    assert not client.secret_matches("chosen" * 10)


def test_expired_initial_access_tokens_are_kept_for_a_while(tenant: Tenant) -> None:
    now = timezone.now()
    _old, new = (InitialAccessTokenFactory.create(tenant_id=tenant.pk, expires_at=now - timedelta(days=days)) for days in (31, 29))
    drop_ended()
    assert list(InitialAccessToken.objects.of(tenant.pk)) == [new]
    forget_all()
