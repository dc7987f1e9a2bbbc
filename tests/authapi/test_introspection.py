"""`POST /oauth/introspect`: a client gets information only about its own tokens and tokens for its API (RFC 7662)."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.models import ApiResource
from authapi.services.api_resources import create_api_resource
from authapi.services.clients import create_client
from authapi.services.tenant_settings import update_tenant_settings
from authapi.tokens.asked import Asked
from identity.models import Tenant, User
from identity.services.tenants import create_tenant
from identity.services.users import block_user
from tests.authapi.asgi_client import Received, ask_revocation, ask_token, get, post
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.proving import Prover, settle_memory
from tests.factories.authapi import Registered, access_token, granted_client, host_of
from tests.factories.logins import code_form, code_of, login_of, public_client, refresh_form, some_user, web_client

API = "urn:orders"
INACTIVE = b'{"active":false}'


@pytest.fixture
def open_tenant(tenant: Tenant) -> Tenant:
    settle_memory()
    update_tenant_settings(tenant_id=tenant.pk, changes={"token_introspection_supported": True})
    scopes = [{"value": "read", "description": ""}]
    create_api_resource(tenant_id=tenant.pk, identifier=API, scopes=scopes, settings={"allow_offline_access": True})
    forget_all()
    return tenant


def ask(tenant: Tenant, registered: Registered, token: str | None, **changes: Any) -> Received:
    good = {"client_id": registered.client_id, "client_secret": registered.secret or None, "token": token}
    form = {name: value for name, value in (good | changes).items() if value is not None}
    return post("/oauth/introspect", tenant, form, as_json=False, headers=None, host=None, address="192.0.2.1")


def tokens_of(tenant: Tenant, registered: Registered, user: User, *, headers: dict[str, str] | None = None, **login: Any) -> dict[str, Any]:
    code = code_of(login_of(tenant, registered, user, **{"scope": "openid read offline_access", "audience": API, **login}))
    answer = ask_token(tenant, code_form(registered, code), headers=headers)
    assert answer.status == 200, answer.body
    return dict(answer.json())


def api_client(tenant: Tenant, identifier: str) -> Registered:
    settings = {"resource_server_identifier": identifier}
    return Registered(*create_client(tenant_id=tenant.pk, name="API", app_type="resource_server", settings=settings))


# --- The setting, and allowed clients --------------------------------------------------------------------------------------------


def test_introspection_is_disabled_and_not_in_discovery_until_a_tenant_enables_it(tenant: Tenant) -> None:
    answer = ask(tenant, web_client(tenant), "x")
    assert (answer.status, answer.json()["error"]) == (404, "endpoint_disabled")
    assert not [name for name in get(tenant, "/.well-known/openid-configuration").json() if "introspection" in name]


def test_discovery_lists_introspection_with_its_authentication_methods(open_tenant: Tenant) -> None:
    document = get(open_tenant, "/.well-known/openid-configuration").json()
    assert document["introspection_endpoint"] == f"{document['issuer']}oauth/introspect"
    assert document["introspection_endpoint_auth_methods_supported"] == ["client_secret_basic", "client_secret_post", "private_key_jwt"]


@pytest.mark.parametrize("changes", [{"client_secret": "wrong"}, {"client_secret": None}, {"client_id": "nobody"}])
def test_a_client_without_authentication_gets_no_information(open_tenant: Tenant, changes: dict[str, Any]) -> None:
    registered = web_client(open_tenant)
    token = tokens_of(open_tenant, registered, some_user(open_tenant))["access_token"]
    answer = ask(open_tenant, registered, token, **changes)
    assert (answer.status, answer.json()["error"]) == (401, "invalid_client")


def test_a_public_client_is_refused(open_tenant: Tenant) -> None:
    answer = ask(open_tenant, public_client(open_tenant), "x")
    assert (answer.status, answer.json()["error"]) == (403, "unauthorized_client")


def test_the_refusal_names_a_missing_token(open_tenant: Tenant) -> None:
    answer = ask(open_tenant, web_client(open_tenant), None)
    assert (answer.status, answer.json()["error_description"]) == (400, "Missing required parameter: token")


# --- Answers ---------------------------------------------------------------------------------------------------------------------


def test_authorization_details_are_returned_to_the_client_and_to_the_api_of_the_token(open_tenant: Tenant) -> None:
    details = [{"type": "order", "amount": 7}]
    rows = ApiResource.objects.of(open_tenant.pk).filter(identifier=API)
    rows.update(settings={"authorization_details": [{"type": "order"}], "allow_offline_access": True})
    registered = web_client(open_tenant)
    tokens = tokens_of(open_tenant, registered, some_user(open_tenant), asked=Asked(details=tuple(details)))
    for asker in (registered, api_client(open_tenant, API)):
        assert ask(open_tenant, asker, tokens["access_token"]).json()["authorization_details"] == details
    assert ask(open_tenant, registered, tokens["refresh_token"]).json()["authorization_details"] == details
    create_api_resource(tenant_id=open_tenant.pk, identifier="urn:other")
    assert ask(open_tenant, api_client(open_tenant, "urn:other"), tokens["access_token"]).body == INACTIVE


def test_an_access_token_is_described_to_its_client_and_to_its_api(open_tenant: Tenant) -> None:
    registered, user = web_client(open_tenant), some_user(open_tenant)
    token = tokens_of(open_tenant, registered, user)["access_token"]
    claims = decoded(token)[1]
    answer = ask(open_tenant, registered, token)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json() == {
        "active": True,
        "iss": host_of(open_tenant).issuer,
        "sub": user.user_id,
        "aud": [API, f"{host_of(open_tenant).issuer}userinfo"],
        "client_id": registered.client_id,
        "scope": "offline_access openid read",
        "token_type": "Bearer",
        "iat": claims["iat"],
        "exp": claims["exp"],
        "jti": claims["jti"],
    }
    assert ask(open_tenant, api_client(open_tenant, API), token).json() == answer.json()


def test_the_token_type_hint_has_no_effect(open_tenant: Tenant) -> None:
    registered = web_client(open_tenant)
    token = tokens_of(open_tenant, registered, some_user(open_tenant))["access_token"]
    assert ask(open_tenant, registered, token, token_type_hint="refresh_token").json()["active"] is True


def test_opaque_and_refresh_tokens_are_described_only_to_their_client(open_tenant: Tenant) -> None:
    registered, user = web_client(open_tenant), some_user(open_tenant)
    issuer = host_of(open_tenant).issuer
    opaque = tokens_of(open_tenant, registered, user, audience=None, scope="openid")["access_token"]
    refresh = tokens_of(open_tenant, registered, user)["refresh_token"]
    told = ask(open_tenant, registered, opaque).json()
    assert (told["sub"], told["aud"], told["token_type"], told["exp"] > told["iat"]) == (user.user_id, f"{issuer}userinfo", "Bearer", True)
    told = ask(open_tenant, registered, refresh).json()
    assert (told["sub"], told["aud"], told["scope"], "token_type" in told) == (user.user_id, API, "openid read offline_access", False)
    for token in (opaque, refresh):
        for other in (web_client(open_tenant), api_client(open_tenant, API)):
            assert ask(open_tenant, other, token).body == INACTIVE


def test_a_bound_token_shows_its_binding(open_tenant: Tenant) -> None:
    registered, prover = web_client(open_tenant), Prover()
    headers = {"DPoP": prover.proof("POST", f"{host_of(open_tenant).issuer}oauth/token")}
    tokens = tokens_of(open_tenant, registered, some_user(open_tenant), headers=headers)
    told = ask(open_tenant, registered, tokens["access_token"]).json()
    assert (told["token_type"], told["cnf"]) == ("DPoP", {"jkt": prover.thumbprint})


def test_a_token_of_a_machine_has_no_user_and_is_active(open_tenant: Tenant) -> None:
    registered = granted_client(open_tenant)
    told = ask(open_tenant, registered, access_token(open_tenant, registered)).json()
    assert (told["active"], told["sub"]) == (True, f"{registered.client_id}@clients")


# --- Unknown and inactive tokens -------------------------------------------------------------------------------------------------


def test_tokens_that_the_client_may_not_inspect_get_the_answer_of_an_unknown_token(open_tenant: Tenant) -> None:
    registered, user = web_client(open_tenant), some_user(open_tenant)
    tokens = tokens_of(open_tenant, registered, user)
    create_api_resource(tenant_id=open_tenant.pk, identifier="urn:other")
    for other in (web_client(open_tenant), api_client(open_tenant, "urn:other")):
        assert ask(open_tenant, other, tokens["access_token"]).body == INACTIVE
    foreign = create_tenant(tenant_id=f"{open_tenant.pk}-b", name="b", host=f"{open_tenant.pk}-b.example.test")
    at_foreign = web_client(foreign)
    theirs = tokens_of(foreign, at_foreign, some_user(foreign), scope="openid", audience=None)["access_token"]
    for token in (theirs, tokens["id_token"], "made-up", "a.b.c", "x" * 20_000):
        assert ask(open_tenant, registered, token).body == INACTIVE


def test_a_revoked_token_is_inactive_immediately(open_tenant: Tenant) -> None:
    registered, user = web_client(open_tenant), some_user(open_tenant)
    tokens = tokens_of(open_tenant, registered, user)
    named = {"client_id": registered.client_id, "client_secret": registered.secret}
    assert ask_revocation(open_tenant, {**named, "token": tokens["refresh_token"]}).status == 200
    forget_all()
    for name in ("access_token", "refresh_token"):
        assert ask(open_tenant, registered, tokens[name]).body == INACTIVE


def test_a_rotated_refresh_token_is_inactive(open_tenant: Tenant) -> None:
    rotating = {"rotation_type": "rotating", "expiration_type": "expiring"}
    registered = web_client(open_tenant, settings={"refresh_token": rotating})
    token = tokens_of(open_tenant, registered, some_user(open_tenant))["refresh_token"]
    successor = ask_token(open_tenant, refresh_form(registered, token)).json()["refresh_token"]
    assert ask(open_tenant, registered, token).body == INACTIVE
    assert ask(open_tenant, registered, successor).json()["active"] is True


def test_tokens_of_a_blocked_user_are_inactive(open_tenant: Tenant) -> None:
    registered, user = web_client(open_tenant), some_user(open_tenant)
    tokens = tokens_of(open_tenant, registered, user)
    opaque = tokens_of(open_tenant, registered, user, audience=None, scope="openid")["access_token"]
    block_user(tenant_id=open_tenant.pk, user_id=user.user_id)
    for token in (tokens["access_token"], tokens["refresh_token"], opaque):
        assert ask(open_tenant, registered, token).body == INACTIVE


def test_a_client_that_is_no_longer_a_resource_server_cannot_inspect_tokens_for_its_api(open_tenant: Tenant) -> None:
    token = tokens_of(open_tenant, web_client(open_tenant), some_user(open_tenant))["access_token"]
    client = api_client(open_tenant, API)
    client.client.app_type = "regular_web"
    client.client.save()
    forget_all()
    assert ApiResource.objects.of(open_tenant.pk).filter(identifier=API).exists()
    assert ask(open_tenant, client, token).body == INACTIVE
