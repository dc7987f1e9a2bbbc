"""Algorithms of tokens: tokens can be signed with each algorithm, clients find the keys, and a token with another algorithm is refused."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.urls import reverse
from joserfc import jws, jwt
from joserfc.jwk import KeySet, OctKey

from authapi.failures import RequestRefused
from authapi.models import ApiResource
from authapi.protocols.oauth.front_channel import front_channel
from authapi.services.api_resources import create_api_resource, ensure_management_api
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import update_client
from authapi.services.resource_changes import update_api_resource
from authapi.tokens.id_token_hints import read_hint
from authapi.tokens.keys import published_keys, signing_key
from identity.models import Tenant
from identity.services.failures import Invalid
from tests.authapi.api.conftest import api as api
from tests.authapi.asgi_client import ask_token, get, read_profile
from tests.authapi.forging import decoded, encoded
from tests.authapi.memory import forget_all
from tests.authapi.test_userinfo import tokens_of
from tests.authapi.token_forms import form_of
from tests.factories.admin import browser_of, new_staff
from tests.factories.authapi import Registered, access_token, global_client, granted_client, host_of
from tests.factories.logins import CALLBACK, code_form, code_of, login_of, some_user, web_client
from tests.management import Management, request

API = "https://accounts.example.test"
SECRET = "a secret of the API that is long"


def published(tenant: Tenant) -> KeySet:
    return KeySet.import_key_set(get(tenant, "/.well-known/jwks.json").json())


def api_with(tenant: Tenant, algorithm: str) -> ApiResource:
    secret = SECRET if algorithm == "HS256" else None
    made = create_api_resource(tenant_id=tenant.pk, identifier=API, settings={"signing_alg": algorithm}, signing_secret=secret)
    forget_all()
    return made


def at_management(tenant: Tenant, token: str) -> int:
    headers = {"host": f"{tenant.pk}.example.test", "authorization": f"Bearer {token}"}
    return request("GET", "/api/v2/clients", "", headers, b"").status


def half_hash(value: str, algorithm: str) -> str:
    digest = hashlib.new("sha512" if algorithm == "RS512" else "sha256", value.encode()).digest()
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).decode().rstrip("=")


# --- Id tokens ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "RS512"])
def test_an_id_token_uses_the_algorithm_of_its_client_and_hashes_of_the_same_length(tenant: Tenant, algorithm: str) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    registered = web_client(tenant, algorithm=algorithm)
    issue = login_of(tenant, registered, some_user(tenant), audience=API, nonce="n")
    members = front_channel(issue, response_types=frozenset({"token", "id_token"}), code_parameters=None, state="s")
    read = jwt.decode(members["id_token"], published(tenant), algorithms=[algorithm])
    assert read.header["alg"] == algorithm
    assert read.claims["at_hash"] == half_hash(members["access_token"], algorithm)
    # The client can send the id token back as `id_token_hint`, which the service verifies with the algorithm of the client.
    assert read_hint(members["id_token"], tenant_id=tenant.pk).client_id == registered.client_id


def test_published_keys_name_an_algorithm_only_while_the_tenant_signs_with_one_algorithm(tenant: Tenant) -> None:
    registered = web_client(tenant)
    assert {jwk["alg"] for jwk in published_keys(tenant.pk)} == {"RS256"}
    update_client(tenant_id=tenant.pk, client_id=registered.client_id, changes={"algorithm": "PS256"})
    # The process that made the change applies the change immediately.
    assert all("alg" not in jwk and jwk["kty"] == "RSA" for jwk in published_keys(tenant.pk))
    update_client(tenant_id=tenant.pk, client_id=registered.client_id, changes={"algorithm": "HS256"})
    create_api_resource(tenant_id=tenant.pk, identifier=API, settings={"signing_alg": "RS512"})
    forget_all()
    assert all("alg" not in jwk for jwk in published_keys(tenant.pk))


def forged_hint(tenant: Tenant, registered: Registered, secret: bytes) -> str:
    claims = {"iss": host_of(tenant).issuer, "sub": "database|x", "aud": registered.client_id, "iat": int(time.time())}
    # The test signs this token itself, because the library refuses to sign with a public key.
    text = f"{encoded({'alg': 'HS256', 'typ': 'JWT'})}.{encoded(claims)}"
    return f"{text}.{encoded(hmac.digest(secret, text.encode(), 'sha256'))}"


@pytest.mark.parametrize("algorithm", ["HS256", "PS256"])
def test_a_hint_signed_with_the_published_key_as_a_secret_is_refused(tenant: Tenant, algorithm: str) -> None:
    registered = web_client(tenant, algorithm=algorithm)
    _, key = signing_key(tenant.pk)
    for secret in (key.as_pem(private=False), str(key.as_dict(private=False)["n"]).encode()):
        with pytest.raises(RequestRefused):
            read_hint(forged_hint(tenant, registered, secret), tenant_id=tenant.pk)


def test_a_hint_signed_with_the_secret_is_refused_after_its_client_changed_the_algorithm(tenant: Tenant) -> None:
    registered = web_client(tenant, algorithm="HS256")
    hint = forged_hint(tenant, registered, registered.secret.encode())
    assert read_hint(hint, tenant_id=tenant.pk).client_id == registered.client_id
    update_client(tenant_id=tenant.pk, client_id=registered.client_id, changes={"algorithm": "PS256"})
    with pytest.raises(RequestRefused):
        read_hint(hint, tenant_id=tenant.pk)


# --- Access tokens --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "RS512"])
def test_an_access_token_uses_the_algorithm_of_its_api_and_is_accepted_by_userinfo(tenant: Tenant, algorithm: str) -> None:
    api_with(tenant, algorithm)
    token = tokens_of(tenant, web_client(tenant), audience=API)["access_token"]
    read = jwt.decode(token, published(tenant), algorithms=[algorithm])
    assert (read.header["alg"], read.claims["aud"]) == (algorithm, [API, f"{host_of(tenant).issuer}userinfo"])
    assert read_profile(tenant, token).status == 200


def test_a_token_signed_with_a_secret_is_only_for_its_api(tenant: Tenant) -> None:
    api_with(tenant, "HS256")
    token = tokens_of(tenant, web_client(tenant), audience=API)["access_token"]
    read = jwt.decode(token, OctKey.import_key(SECRET), algorithms=["HS256"])
    assert (read.claims["aud"], "kid" in read.header) == (API, False)
    assert read_profile(tenant, token).status == 401


def test_an_api_with_a_secret_cannot_create_tokens_for_other_apis(tenant: Tenant) -> None:
    api_with(tenant, "HS256")
    registered = web_client(tenant)
    user = some_user(tenant)
    own = tokens_of(tenant, registered, user, audience=API)["access_token"]
    management = decoded(access_token(tenant, global_client(tenant)))[1]
    profile = {**decoded(own)[1], "aud": [API, f"{host_of(tenant).issuer}userinfo"]}
    kid, _ = signing_key(tenant.pk)
    for header in ({}, {"kid": kid}):
        forged = [
            jwt.encode({"alg": "HS256", "typ": "JWT", **header}, claims, OctKey.import_key(SECRET)) for claims in (profile, management)
        ]
        assert read_profile(tenant, forged[0]).status == 401
        answer = request("GET", "/api/v2/clients", "", {"host": f"{tenant.pk}.example.test", "authorization": f"Bearer {forged[1]}"}, b"")
        assert answer.status == 401


@pytest.mark.parametrize("algorithm", ["RS384", "PS512", "none"])
def test_an_unlisted_algorithm_is_refused_even_with_the_right_key(tenant: Tenant, algorithm: str) -> None:
    token = access_token(tenant, global_client(tenant))
    kid, key = signing_key(tenant.pk)
    claims = decoded(token)[1]
    if algorithm == "none":
        forged = f"{encoded({'alg': 'none', 'typ': 'JWT', 'kid': kid})}.{token.split('.')[1]}."
    else:
        forged = jwt.encode({"alg": algorithm, "typ": "JWT", "kid": kid}, claims, key, algorithms=[algorithm])
    assert at_management(tenant, forged) == 401


@pytest.mark.parametrize("algorithm", ["PS256", "RS512"])
def test_tokens_of_each_algorithm_are_accepted_by_the_management_interface(tenant: Tenant, algorithm: str) -> None:
    resource = ensure_management_api(tenant.pk)
    update_api_resource(tenant_id=tenant.pk, resource_id=resource.pk, changes={"settings": {"signing_alg": algorithm}})
    forget_all()
    token = access_token(tenant, granted_client(tenant, ["read:clients"]))
    assert decoded(token)[0]["alg"] == algorithm
    assert at_management(tenant, token) == 200


def test_a_signature_of_one_algorithm_is_refused_under_the_name_of_another_algorithm(tenant: Tenant) -> None:
    token = access_token(tenant, global_client(tenant))
    header, payload, signature = token.split(".")
    renamed = f"{encoded({**decoded(token)[0], 'alg': 'PS256'})}.{payload}.{signature}"
    assert jws.extract_compact(renamed.encode()).headers()["alg"] == "PS256"
    assert at_management(tenant, renamed) == 401
    assert header != renamed.split(".")[0]


def test_an_api_without_an_algorithm_uses_ps256_only_for_clients_with_a_compliance_level(tenant: Tenant) -> None:
    from tests.authapi.compliance.bank import bank_of

    bank = bank_of(tenant, "fapi2_sp_mtls_mtls")
    resource = create_api_resource(tenant_id=tenant.pk, identifier=API)
    ordinary = granted_client(tenant)
    for client in (bank.client, ordinary.client):
        create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=resource, scopes=[])
    sent = bank.form(grant_type="client_credentials", audience=API)
    assert decoded(ask_token(tenant, sent, headers=bank.tls).json()["access_token"])[0]["alg"] == "PS256"
    assert decoded(ask_token(tenant, form_of(tenant, ordinary, audience=API)).json()["access_token"])[0]["alg"] == "RS256"


# --- Settings -------------------------------------------------------------------------------------------------------------------


def test_the_management_interface_sets_an_algorithm_and_never_returns_its_secret(api: Management) -> None:
    made = api.post("resource-servers", {"identifier": API, "signing_alg": "HS256", "signing_secret": SECRET})
    assert (made.status, made.json["signing_alg"]) == (201, "HS256")
    assert SECRET not in made.body.decode() + api.get(f"resource-servers/{made.json['id']}").body.decode()
    path = f"resource-servers/{made.json['id']}"
    assert api.patch(path, {"signing_alg": "PS256"}).json["signing_alg"] == "PS256"
    # Removing the algorithm has also removed the secret.
    assert ApiResource.objects.of(api.client.tenant_id).get(pk=made.json["id"]).sealed_signing_secret == ""
    assert api.patch(path, {"signing_alg": "HS256"}).status == 400
    assert api.patch(path, {"signing_alg": None}).json["signing_alg"] == "RS256"


@pytest.mark.parametrize(
    "body",
    [{"signing_alg": "HS256"}, {"signing_alg": "HS256", "signing_secret": "short"}, {"signing_secret": SECRET}, {"signing_alg": "ES256"}],
)
def test_an_unusable_signing_algorithm_is_refused(api: Management, body: dict[str, Any]) -> None:
    answer = api.post("resource-servers", {"identifier": API, **body})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")


def test_tokens_for_the_management_interface_cannot_be_signed_with_a_secret(tenant: Tenant) -> None:
    resource = ensure_management_api(tenant.pk)
    settings = {"settings": {"signing_alg": "HS256"}}
    with pytest.raises(Invalid):
        update_api_resource(tenant_id=tenant.pk, resource_id=resource.pk, changes=settings, signing_secret=secrets.token_urlsafe(32))


def test_the_admin_sets_the_algorithm_and_the_secret(tenant: Tenant) -> None:
    resource = create_api_resource(tenant_id=tenant.pk, identifier=API)
    browser = browser_of(new_staff(tenant))
    address = reverse("admin:authapi_apiresource_change", args=(quote(resource.pk),))
    form = browser.get(address).context["adminform"].form
    sent = {name: value for name in form.fields if (value := form[name].value()) not in (None, False)}
    refused = browser.post(address, {**sent, "signing_alg": "HS256"})
    assert "HS256 needs a secret" in refused.content.decode()
    assert browser.post(address, {**sent, "signing_alg": "HS256", "signing_secret": SECRET}).status_code == 302
    resource.refresh_from_db()
    assert (resource.settings["signing_alg"], resource.signing_secret) == ("HS256", SECRET)
    assert SECRET not in browser.get(address).content.decode()
    # Other changes keep the secret.
    assert browser.post(address, {**sent, "signing_alg": "HS256", "name": "Accounts"}).status_code == 302
    resource.refresh_from_db()
    assert (resource.name, resource.signing_secret) == ("Accounts", SECRET)


def test_a_code_issued_before_a_change_of_the_algorithm_gets_tokens_with_the_new_algorithm(tenant: Tenant) -> None:
    registered = web_client(tenant)
    code = code_of(login_of(tenant, registered, some_user(tenant)))
    update_client(tenant_id=tenant.pk, client_id=registered.client_id, changes={"algorithm": "RS512"})
    forget_all()
    token = ask_token(tenant, code_form(registered, code, redirect_uri=CALLBACK)).json()["id_token"]
    assert jwt.decode(token, published(tenant), algorithms=["RS512"]).header["alg"] == "RS512"
