"""Access tokens and id tokens of users: their contents in each dialect, their keys, and the interfaces that accept them."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest
from django.db import connections
from joserfc import jwt
from joserfc.jwk import KeySet, OctKey

from authapi.models import AccessToken
from authapi.services.api_resources import create_api_resource, ensure_management_api
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client
from authapi.services.permissions import Named, add_user_permissions
from authapi.services.tenant_settings import update_tenant_settings
from authapi.tokens import keys
from authapi.tokens.verifying import ClientNotGlobal, InvalidSignature, verify_access_token
from identity.models import Tenant
from identity.services.memberships import add_members, remove_members
from identity.services.tenants import create_tenant
from tests.authapi.asgi_client import ask_token, get, read_profile
from tests.authapi.certificates import certificate, edge_key, forwarded
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.deadlines import eventually
from tests.factories.authapi import Registered, host_of
from tests.factories.logins import CALLBACK, code_form, code_of, login_of, public_client, refresh_form, some_user, web_client
from tests.factories.organizations import make_organization

API = "urn:orders"
SCOPES = [{"value": "read", "description": ""}, {"value": "write", "description": ""}]


def tokens_of(tenant: Tenant, registered: Registered, user: Any = None, *, headers: Any = None, **login: Any) -> dict[str, Any]:
    issue = login_of(tenant, registered, user or some_user(tenant), **login)
    answer = ask_token(tenant, code_form(registered, code_of(issue)), headers=headers)
    assert answer.status == 200, answer.body
    members: dict[str, Any] = answer.json()
    return members


def published(tenant: Tenant) -> KeySet:
    return KeySet.import_key_set(get(tenant, "/.well-known/jwks.json").json())


# --- Access tokens ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "kind", "client_claim", "with_permissions"),
    [
        ("access_token", "JWT", "azp", False),
        ("access_token_authz", "JWT", "azp", True),
        ("rfc9068_profile", "at+jwt", "client_id", False),
        ("rfc9068_profile_authz", "at+jwt", "client_id", True),
    ],
)
def test_each_dialect_writes_the_claims_that_its_apis_read(
    tenant: Tenant, dialect: str, kind: str, client_claim: str, with_permissions: bool
) -> None:
    create_api_resource(
        tenant_id=tenant.pk, identifier=API, scopes=SCOPES, token_dialect=dialect, token_lifetime=600, settings={"enforce_policies": True}
    )
    user, registered = some_user(tenant), web_client(tenant)
    both = [Named(API, "read"), Named(API, "write")]
    add_user_permissions(tenant_id=tenant.pk, user_id=user.user_id, permissions=both)
    members = tokens_of(tenant, registered, user, scope="openid read", audience=API)

    verified = jwt.decode(members["access_token"], published(tenant), algorithms=["RS256"])
    claims = dict(verified.claims)
    issuer, issued_at = host_of(tenant).issuer, claims.pop("iat")
    assert verified.header["typ"] == kind
    assert claims.pop("exp") - issued_at == members["expires_in"] == 600
    assert claims.pop("jti")
    expected = {
        "iss": issuer,
        "sub": user.user_id,
        "aud": [API, f"{issuer}userinfo"],
        "scope": "openid read",
        client_claim: registered.client_id,
        "client_version": 1,
    }
    # The dialect lists every permission of the user at the API, including permissions that were not requested.
    assert claims == expected | ({"permissions": ["read", "write"]} if with_permissions else {})


def test_the_api_is_the_only_audience_of_a_token_without_openid(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API, scopes=SCOPES)
    claims = decoded(tokens_of(tenant, web_client(tenant), scope="read", audience=API)["access_token"])[1]
    assert (claims["aud"], claims["scope"]) == (API, "read")


def test_a_token_without_an_audience_is_opaque_and_only_its_digest_is_stored(tenant: Tenant) -> None:
    members = tokens_of(tenant, web_client(tenant))
    assert "." not in members["access_token"]
    row = AccessToken.objects.of(tenant.pk).get()
    assert (row.token, members["expires_in"]) == ("", 86400)
    assert members["access_token"] not in repr(row.__dict__)


def test_a_refreshed_token_names_the_grant_that_issued_it(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API, settings={"allow_offline_access": True})
    registered = web_client(tenant)
    first = tokens_of(tenant, registered, scope="openid offline_access", audience=API)
    second = ask_token(tenant, refresh_form(registered, first["refresh_token"])).json()
    assert "gty" not in decoded(first["access_token"])[1]
    assert decoded(second["access_token"])[1]["gty"] == "refresh_token"


def test_both_tokens_contain_the_organization_but_its_name_only_if_enabled(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API, settings={"allow_offline_access": True})
    user, registered, acme = some_user(tenant), web_client(tenant), make_organization(tenant)
    add_members(tenant_id=tenant.pk, organization_id=acme.pk, user_ids=[user.user_id])
    members = tokens_of(tenant, registered, user, scope="openid offline_access", audience=API, organization=acme)
    for name in ("access_token", "id_token"):
        claims = decoded(members[name])[1]
        assert (claims["org_id"], "org_name" in claims) == (acme.pk, False)
    update_tenant_settings(tenant_id=tenant.pk, changes={"allow_organization_name_in_authentication_api": True})
    forget_all()
    refreshed = ask_token(tenant, refresh_form(registered, members["refresh_token"])).json()
    assert [decoded(refreshed[name])[1]["org_name"] for name in ("access_token", "id_token")] == [acme.name, acme.name]


def test_no_token_for_an_organization_is_issued_after_the_user_has_left_the_organization(tenant: Tenant) -> None:
    user, registered, acme = some_user(tenant), web_client(tenant), make_organization(tenant)
    add_members(tenant_id=tenant.pk, organization_id=acme.pk, user_ids=[user.user_id])
    members = tokens_of(tenant, registered, user, scope="openid offline_access", organization=acme)
    remove_members(tenant_id=tenant.pk, organization_id=acme.pk, user_ids=[user.user_id])
    answer = ask_token(tenant, refresh_form(registered, members["refresh_token"]))
    assert (answer.status, answer.json()["error"]) == (403, "access_denied")
    assert answer.json()["error_description"] == f"user {user.user_id} is not part of the {acme.pk} organization"


# --- Certificates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("audience", [None, API])
def test_a_certificate_in_the_request_binds_the_tokens_to_the_certificate(tenant: Tenant, audience: str | None) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API)
    key, own, other = edge_key(tenant), certificate(), certificate("second")
    forget_all()
    members = tokens_of(tenant, web_client(tenant), audience=audience, headers=forwarded(key, own))
    if audience:
        assert decoded(members["access_token"])[1]["cnf"].keys() == {"x5t#S256"}
    assert members["token_type"] == "Bearer"
    assert read_profile(tenant, members["access_token"]).status == 401
    assert read_profile(tenant, members["access_token"], headers=forwarded(key, other)).status == 401
    assert read_profile(tenant, members["access_token"], headers=forwarded(key, own)).status == 200


def test_a_refresh_token_of_a_public_client_is_also_bound_to_its_certificate(tenant: Tenant) -> None:
    registered, key, own = public_client(tenant), edge_key(tenant), certificate()
    forget_all()
    members = tokens_of(tenant, registered, scope="openid offline_access", headers=forwarded(key, own))
    form = refresh_form(registered, members["refresh_token"])
    assert ask_token(tenant, form).status == 403
    assert ask_token(tenant, form, headers=forwarded(key, certificate("second"))).status == 403
    assert ask_token(tenant, form, headers=forwarded(key, own)).status == 200


# --- Id tokens --------------------------------------------------------------------------------------------------------


def test_an_id_token_describes_the_user_and_the_login(tenant: Tenant) -> None:
    user, registered = some_user(tenant, email="a@example.test", given_name="Ada"), web_client(tenant)
    login = login_of(tenant, registered, user, scope="openid profile email", nonce="n-1")
    members = ask_token(tenant, code_form(registered, code_of(login))).json()
    verified = jwt.decode(members["id_token"], published(tenant), algorithms=["RS256"])
    claims = dict(verified.claims)
    assert login.session is not None
    assert verified.header["typ"] == "JWT"
    assert claims["exp"] - claims["iat"] == 36_000
    expected = {
        "iss": host_of(tenant).issuer,
        "sub": user.user_id,
        "aud": registered.client_id,
        "auth_time": int(login.auth_time.timestamp()),
        "sid": login.session.pk,
        "nonce": "n-1",
        "amr": ["pwd"],
        "given_name": "Ada",
        "email": "a@example.test",
        "email_verified": False,
    }
    assert {name: claims.get(name) for name in expected} == expected
    assert not claims.keys() & {"azp", "at_hash", "c_hash", "s_hash", "phone_number"}


def test_the_client_sets_the_lifetime_of_its_id_tokens(tenant: Tenant) -> None:
    registered = web_client(tenant, settings={"jwt_configuration": {"lifetime_in_seconds": 77}})
    claims = decoded(tokens_of(tenant, registered)["id_token"])[1]
    assert claims["exp"] - claims["iat"] == 77


def test_the_secret_of_a_client_can_sign_its_id_tokens(tenant: Tenant) -> None:
    client, secret = create_client(
        tenant_id=tenant.pk, name="HS", grant_types=["authorization_code"], redirect_uris=CALLBACK, algorithm="HS256"
    )
    token = tokens_of(tenant, Registered(client, secret))["id_token"]
    assert jwt.decode(token, OctKey.import_key(secret), algorithms=["HS256"]).claims["aud"] == client.client_id
    assert "kid" not in decoded(token)[0]


# --- Accepted tokens --------------------------------------------------------------------------------------------------


def test_a_management_token_of_a_user_is_accepted_only_if_its_client_is_global(tenant: Tenant) -> None:
    resource, host = ensure_management_api(tenant.pk), host_of(tenant)
    audience, user = f"{host.base_url}/", some_user(tenant)
    add_user_permissions(tenant_id=tenant.pk, user_id=user.user_id, permissions=[Named(resource.identifier, "read:users")])
    everything = web_client(tenant, is_global=True)
    token = tokens_of(tenant, everything, user, scope="openid read:users", audience=audience)["access_token"]
    verified = verify_access_token(token, host=host)
    assert (verified.subject, verified.scopes) == (user.user_id, frozenset({"openid", "read:users"}))

    ordinary = web_client(tenant)
    create_client_grant(
        tenant_id=tenant.pk, client_id=ordinary.client_id, api_resource=resource, scopes=["read:users"], subject_type="user"
    )
    forget_all()
    ordinary.client.refresh_from_db()
    token = tokens_of(tenant, ordinary, user, scope="openid read:users", audience=audience)["access_token"]
    with pytest.raises(ClientNotGlobal, match=r"Client is not global\."):
        verify_access_token(token, host=host)


def test_the_token_of_a_user_of_another_tenant_is_invalid(tenant: Tenant) -> None:
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    for each in (tenant, other):
        create_api_resource(tenant_id=each.pk, identifier=API)
    token = tokens_of(other, web_client(other), audience=API)["access_token"]
    with pytest.raises(InvalidSignature):
        verify_access_token(token, host=host_of(tenant))


def test_every_token_verifies_during_rotations_of_keys(tenant: Tenant) -> None:
    create_api_resource(tenant_id=tenant.pk, identifier=API, settings={"allow_offline_access": True})
    registered = web_client(tenant)
    form = refresh_form(registered, tokens_of(tenant, registered, scope="openid offline_access", audience=API)["refresh_token"])
    is_over, minted = threading.Event(), list[dict[str, Any]]()

    def refresh() -> None:
        while not is_over.is_set():
            minted.append(ask_token(tenant, form).json())
        connections.close_all()

    thread = threading.Thread(target=refresh)
    thread.start()
    for rotation in range(1, 4):
        keys.rotate_keys(tenant.pk)
        eventually(partial(lambda count: len(minted) >= count, 5 * rotation), seconds=30)
        # At this moment, a process with cached old keys and a reader of the published keys can both verify the token.
        assert read_profile(tenant, minted[-1]["access_token"]).status == 200
    is_over.set()
    thread.join()

    tokens = [members[name] for members in minted for name in ("access_token", "id_token")]
    assert len({decoded(token)[0]["kid"] for token in tokens}) >= 2
    key_set = published(tenant)
    for token in tokens:
        jwt.decode(token, key_set, algorithms=["RS256"])
