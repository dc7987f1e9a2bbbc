"""An API exchanges a received token, and gets a token for the API that it calls (RFC 8693): clients, users, scopes and lifetimes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pytest

from authapi.models import ApiResource, ClientGrant, SignIn
from authapi.protocols.oauth.engine import server
from authapi.services.api_resources import create_api_resource, ensure_management_api
from authapi.services.client_grants import change_client_grant, create_client_grant
from authapi.services.clients import create_client, update_client
from authapi.services.permissions import Named, add_user_permissions
from authapi.services.resource_changes import update_api_resource
from authapi.services.tenant_settings import update_tenant_settings
from authapi.tokens.revocation import revoke_lineage
from identity.models import Tenant, User
from identity.services.failures import Invalid
from identity.services.memberships import add_members, remove_members
from identity.services.organizations import create_organization
from identity.services.tenants import create_tenant
from identity.services.users import block_user, delete_user
from tests.authapi.asgi_client import Received, ask_token
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.proving import Prover, settle_memory
from tests.factories.authapi import Registered, host_of
from tests.factories.logins import code_form, code_of, login_of, some_user, web_client

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
FIRST, SECOND, THIRD = "urn:orders", "urn:stock", "urn:ledger"
SCOPES = [{"value": value, "description": ""} for value in ("read", "write", "delete")]
INVALID = (400, "invalid_request", "Unknown or invalid subject token.")


@dataclass
class World:
    """An application, the API that it calls, and the API that the first API calls next."""

    tenant: Tenant
    user: User
    application: Registered
    orders: Registered
    stock: ApiResource
    grant: ClientGrant

    def subject(
        self, *, scope: str = "read write", audience: str | None = FIRST, headers: dict[str, str] | None = None, **changes: Any
    ) -> str:
        """Return a token of the user for the first API."""
        code = code_of(login_of(self.tenant, self.application, self.user, scope=scope, audience=audience, **changes))
        answer = ask_token(self.tenant, code_form(self.application, code), headers=headers)
        assert answer.status == 200, answer.body
        return str(answer.json()["access_token"])

    def ask(self, token: str, *, by: Registered | None = None, headers: dict[str, str] | None = None, **changes: Any) -> Received:
        client = by or self.orders
        good = {
            "grant_type": GRANT,
            "client_id": client.client_id,
            "client_secret": client.secret,
            "subject_token": token,
            "subject_token_type": ACCESS_TOKEN,
            "audience": SECOND,
        }
        form = {name: value for name, value in {**good, **changes}.items() if value is not None}
        return ask_token(self.tenant, form, headers=headers)

    def claims(self, token: str, **changes: Any) -> dict[str, Any]:
        answer = self.ask(token, **changes)
        assert answer.status == 200, answer.body
        return dict(decoded(answer.json()["access_token"])[1])


def api_client(tenant: Tenant, identifier: str, **changes: Any) -> Registered:
    """Create the client of an API. This client may exchange the tokens that the API receives."""
    settings = {
        "resource_server_identifier": identifier,
        "token_exchange": {"allow_any_profile_of_type": ["on_behalf_of_token_exchange"]},
        **changes.pop("settings", {}),
    }
    fields = {"name": identifier, "app_type": "resource_server", "grant_types": ["client_credentials", GRANT], **changes}
    return Registered(*create_client(tenant_id=tenant.pk, settings=settings, **fields))


def for_users(tenant: Tenant, client: Registered, resource: ApiResource, *scopes: str, **settings: Any) -> ClientGrant:
    return create_client_grant(
        tenant_id=tenant.pk, client_id=client.client_id, api_resource=resource, scopes=scopes, subject_type="user", settings=settings
    )


@pytest.fixture
def world(tenant: Tenant) -> World:
    settle_memory()
    create_api_resource(tenant_id=tenant.pk, identifier=FIRST, scopes=SCOPES)
    stock = create_api_resource(tenant_id=tenant.pk, identifier=SECOND, scopes=SCOPES)
    orders = api_client(tenant, FIRST)
    return World(tenant, some_user(tenant), web_client(tenant), orders, stock, for_users(tenant, orders, stock, "read", "write"))


def refused(answer: Received) -> tuple[int, str, str]:
    body = answer.json()
    return answer.status, body["error"], body["error_description"]


# --- Answers ---------------------------------------------------------------------------------------------------------------------


def test_the_new_token_identifies_the_user_and_the_actor(world: World) -> None:
    token = world.subject()
    answer = world.ask(token)
    assert answer.status == 200, answer.body
    body = answer.json()
    assert (body["issued_token_type"], body["token_type"], body["scope"]) == (ACCESS_TOKEN, "Bearer", "read write")
    assert body.keys() == {"access_token", "issued_token_type", "token_type", "expires_in", "scope"}
    claims = decoded(body["access_token"])[1]
    assert (claims["sub"], claims["aud"], claims["azp"]) == (world.user.user_id, SECOND, world.orders.client_id)
    assert claims["act"] == {"sub": world.orders.client_id}
    line = SignIn.objects.of(world.tenant.pk).get(type="secte")
    assert (line.user_id, line.client_id, line.details["audience"]) == (world.user.user_id, world.orders.client_id, SECOND)


@pytest.mark.parametrize("algorithm", ["PS256", "RS512", "HS256"])
def test_the_next_api_determines_how_its_tokens_are_signed(world: World, algorithm: str) -> None:
    secret = "a secret of the API that is long" if algorithm == "HS256" else None
    how = {"signing_alg": algorithm}
    ledger = create_api_resource(tenant_id=world.tenant.pk, identifier=THIRD, settings=how, signing_secret=secret)
    for_users(world.tenant, world.orders, ledger)
    token = world.ask(world.subject(), audience=THIRD).json()["access_token"]
    assert decoded(token)[0]["alg"] == algorithm
    # A token signed with the tenant's key can be exchanged again. A token signed with the secret of an API cannot be exchanged, because the
    # API could have forged the token.
    third = api_client(world.tenant, THIRD)
    for_users(world.tenant, third, world.stock, "read")
    assert world.ask(token, by=third).status == (400 if algorithm == "HS256" else 200)


def test_the_next_api_can_be_named_as_a_resource(world: World) -> None:
    token = world.subject()
    assert refused(world.ask(token, audience=None, resource=SECOND)) == (400, "invalid_request", "Missing required parameter: audience")
    update_tenant_settings(tenant_id=world.tenant.pk, changes={"resource_parameter_profile": "compatibility"})
    forget_all()
    assert world.claims(token, audience=None, resource=SECOND)["aud"] == SECOND
    answer = world.ask(token, audience=None, resource=THIRD)
    assert (answer.status, answer.json()["error"]) == (400, "invalid_target")
    lines = SignIn.objects.of(world.tenant.pk).filter(type="fecte")
    assert {line.details["audience"] for line in lines} == {SECOND, THIRD}


def test_a_chain_of_exchanges_names_every_actor_and_ends_after_five_exchanges(world: World) -> None:
    ledger = create_api_resource(tenant_id=world.tenant.pk, identifier=THIRD, scopes=SCOPES)
    stock = api_client(world.tenant, SECOND)
    for_users(world.tenant, stock, ledger, "read")
    for_users(world.tenant, stock, world.stock, "read")
    first = world.ask(world.subject()).json()["access_token"]
    claims = world.claims(first, by=stock, audience=THIRD)
    assert claims["act"] == {"sub": stock.client_id, "act": {"sub": world.orders.client_id}}
    token = first
    for _ in range(4):
        token = world.ask(token, by=stock).json()["access_token"]
    assert refused(world.ask(token, by=stock)) == (400, "invalid_request", "The subject token already went through 5 exchanges.")


def test_impersonation_does_not_name_the_client_and_keeps_earlier_actors(world: World) -> None:
    change_client_grant(tenant_id=world.tenant.pk, grant_id=world.grant.pk, changes={"settings": {"token_exchange": "impersonation"}})
    forget_all()
    assert "act" not in world.claims(world.subject())
    stock = api_client(world.tenant, SECOND)
    ledger = create_api_resource(tenant_id=world.tenant.pk, identifier=THIRD, scopes=SCOPES)
    for_users(world.tenant, stock, ledger, "read", token_exchange="impersonation")
    change_client_grant(tenant_id=world.tenant.pk, grant_id=world.grant.pk, changes={"settings": {"token_exchange": None}})
    forget_all()
    delegated = world.ask(world.subject()).json()["access_token"]
    assert world.claims(delegated, by=stock, audience=THIRD)["act"] == {"sub": world.orders.client_id}


def test_the_new_token_expires_no_later_than_the_subject_token(world: World) -> None:
    update_api_resource(
        tenant_id=world.tenant.pk,
        resource_id=ApiResource.objects.of(world.tenant.pk).get(identifier=FIRST).pk,
        changes={"token_lifetime": 40},
    )
    forget_all()
    token = world.subject()
    assert time.time() < world.claims(token)["exp"] <= decoded(token)[1]["exp"] <= time.time() + 40
    update_api_resource(tenant_id=world.tenant.pk, resource_id=world.stock.pk, changes={"token_lifetime": 10})
    forget_all()
    assert world.ask(token).json()["expires_in"] == 10


def test_revoking_the_login_revokes_the_new_token(world: World) -> None:
    login = login_of(world.tenant, world.application, world.user, scope="read", audience=FIRST)
    token = ask_token(world.tenant, code_form(world.application, code_of(login))).json()["access_token"]
    stock = api_client(world.tenant, SECOND)
    for_users(world.tenant, stock, world.stock, "read")
    exchanged = world.ask(token).json()["access_token"]
    revoke_lineage(tenant_id=world.tenant.pk, lineage=login.lineage)
    forget_all()
    assert refused(world.ask(token)) == INVALID
    assert refused(world.ask(exchanged, by=stock)) == INVALID


# --- Scopes and permissions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "granted"),
    [(None, "read write"), ("write", "write"), ("delete admin", ""), ("write openid offline_access read", "write read")],
)
def test_a_new_token_gets_only_scopes_of_the_grant(world: World, scope: str | None, granted: str) -> None:
    answer = world.ask(world.subject(scope="read"), scope=scope)
    assert answer.json()["scope"] == granted
    assert not {"id_token", "refresh_token"} & answer.json().keys()


def test_a_new_token_has_only_rights_that_both_the_grant_and_the_user_have(world: World) -> None:
    changes = {"settings": {"enforce_policies": True}, "token_dialect": "access_token_authz"}
    update_api_resource(tenant_id=world.tenant.pk, resource_id=world.stock.pk, changes=changes)
    add_user_permissions(
        tenant_id=world.tenant.pk, user_id=world.user.user_id, permissions=[Named(SECOND, "read"), Named(SECOND, "delete")]
    )
    forget_all()
    claims = world.claims(world.subject())
    assert (claims["scope"], claims["permissions"]) == ("read", ["read"])
    assert world.claims(world.subject(), scope="write")["permissions"] == []


@pytest.mark.parametrize(
    ("enforces", "dialect", "scope", "permissions"),
    [
        (False, "access_token_authz", "read write", ["read"]),
        (True, "access_token", "read", None),
        (False, "access_token", "read write", None),
    ],
)
def test_scopes_and_permissions_depend_on_two_settings_of_the_api(
    world: World, enforces: bool, dialect: str, scope: str, permissions: list[str] | None
) -> None:
    changes = {"settings": {"enforce_policies": enforces}, "token_dialect": dialect}
    update_api_resource(tenant_id=world.tenant.pk, resource_id=world.stock.pk, changes=changes)
    add_user_permissions(tenant_id=world.tenant.pk, user_id=world.user.user_id, permissions=[Named(SECOND, "read")])
    forget_all()
    claims = world.claims(world.subject())
    assert (claims["scope"], claims.get("permissions")) == (scope, permissions)


def test_an_exchange_for_the_same_api_cannot_add_scopes(world: World) -> None:
    first = ApiResource.objects.of(world.tenant.pk).get(identifier=FIRST)
    for_users(world.tenant, world.orders, first, "read", "write", "delete")
    assert world.ask(world.subject(scope="read delete"), audience=FIRST).json()["scope"] == "read delete"


def test_an_exchange_for_an_api_that_is_open_to_all_clients_requires_a_grant(world: World) -> None:
    create_api_resource(tenant_id=world.tenant.pk, identifier=THIRD, scopes=SCOPES)
    answer = world.ask(world.subject(), audience=THIRD)
    assert (answer.status, answer.json()["error"]) == (403, "access_denied")


def test_no_token_is_issued_for_an_api_that_denies_users(world: World) -> None:
    changes = {"settings": {"subject_type_authorization": {"user": {"policy": "deny_all"}}}}
    update_api_resource(tenant_id=world.tenant.pk, resource_id=world.stock.pk, changes=changes)
    forget_all()
    assert world.ask(world.subject()).json()["error"] == "access_denied"


def test_the_management_interface_cannot_be_the_target(world: World) -> None:
    for_users(world.tenant, world.orders, ensure_management_api(world.tenant.pk), "read:users")
    answer = world.ask(world.subject(), audience=f"{host_of(world.tenant).base_url}/")
    assert answer.json()["error"] == "access_denied"


def test_a_grant_for_the_client_itself_cannot_allow_token_exchange(world: World) -> None:
    with pytest.raises(Invalid, match="token_exchange"):
        create_client_grant(
            tenant_id=world.tenant.pk,
            client_id=world.orders.client_id,
            api_resource=world.stock,
            settings={"token_exchange": "impersonation"},
        )


# --- Subject tokens --------------------------------------------------------------------------------------------------------------


def test_every_token_that_is_invalid_for_this_api_gets_the_same_refusal(world: World) -> None:
    machine = {
        "grant_type": "client_credentials",
        "audience": FIRST,
        "client_id": world.orders.client_id,
        "client_secret": world.orders.secret,
    }
    first = ApiResource.objects.of(world.tenant.pk).get(identifier=FIRST)
    create_client_grant(tenant_id=world.tenant.pk, client_id=world.orders.client_id, api_resource=first, scopes=["read"])
    forget_all()
    update_api_resource(tenant_id=world.tenant.pk, resource_id=first.pk, changes={"settings": {"allow_offline_access": True}})
    forget_all()
    code = code_of(login_of(world.tenant, world.application, world.user, scope="openid read offline_access", audience=FIRST))
    tokens = ask_token(world.tenant, code_form(world.application, code)).json()
    good = world.subject()
    wrong = [
        ask_token(world.tenant, machine).json()["access_token"],
        tokens["refresh_token"],
        tokens["id_token"],
        world.subject(audience=None, scope="openid"),
        world.subject(audience=SECOND),
        good[:-2] + ("AA" if good[-2:] != "AA" else "BB"),
        "made-up",
    ]
    assert world.ask(good).status == 200
    assert [refused(world.ask(token)) for token in wrong] == [INVALID] * len(wrong)
    lines = SignIn.objects.of(world.tenant.pk).filter(type="fecte")
    assert {(line.client_id, line.user_id, line.description) for line in lines} == {(world.orders.client_id, "", INVALID[2])}


def test_a_token_of_another_tenant_is_unknown(world: World) -> None:
    other = create_tenant(tenant_id=f"{world.tenant.pk}-b", name="b", host=f"{world.tenant.pk}-b.example.test")
    create_api_resource(tenant_id=other.pk, identifier=FIRST, scopes=SCOPES)
    application, user = web_client(other), some_user(other)
    code = code_of(login_of(other, application, user, scope="read", audience=FIRST))
    assert refused(world.ask(ask_token(other, code_form(application, code)).json()["access_token"])) == INVALID


def test_an_expired_token_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    token = world.subject()
    ends = decoded(token)[1]["exp"]
    monkeypatch.setattr("authapi.tokens.verifying.time.time", lambda: ends + 1.0)
    assert refused(world.ask(token)) == INVALID


def test_a_blocked_or_deleted_user_gets_no_token(world: World) -> None:
    token = world.subject()
    block_user(tenant_id=world.tenant.pk, user_id=world.user.user_id)
    assert refused(world.ask(token)) == (403, "unauthorized", "user is blocked")
    delete_user(tenant_id=world.tenant.pk, user_id=world.user.user_id)
    assert refused(world.ask(token)) == INVALID


@pytest.mark.parametrize(
    "kind",
    ["urn:ietf:params:oauth:token-type:refresh_token", "urn:ietf:params:oauth:token-type:id_token", "urn:auth0:x", "urn:acme:unknown"],
)
def test_other_types_of_tokens_are_refused(world: World, kind: str) -> None:
    both = {"allow_any_profile_of_type": ["on_behalf_of_token_exchange", "custom_authentication"]}
    update_client(tenant_id=world.tenant.pk, client_id=world.orders.client_id, changes={"settings": {"token_exchange": both}})
    forget_all()
    answer = world.ask(world.subject(), subject_token_type=kind)
    assert refused(answer) == (400, "invalid_request", f"Unsupported subject_token_type: {kind}")


@pytest.mark.parametrize("missing", ["subject_token", "subject_token_type", "audience"])
def test_the_refusal_names_a_missing_parameter(world: World, missing: str) -> None:
    answer = world.ask(world.subject(), **{missing: None})
    assert refused(answer) == (400, "invalid_request", f"Missing required parameter: {missing}")


def test_only_access_tokens_are_issued(world: World) -> None:
    kind = "urn:ietf:params:oauth:token-type:id_token"
    assert refused(world.ask(world.subject(), requested_token_type=kind)) == (
        400,
        "invalid_request",
        f"Unsupported requested_token_type: {kind}",
    )


# --- Organizations ---------------------------------------------------------------------------------------------------------------


def test_the_new_token_is_for_the_organization_of_the_subject_token(world: World) -> None:
    acme, other = (create_organization(tenant_id=world.tenant.pk, name=name) for name in ("acme", "globex"))
    for one in (acme, other):
        add_members(tenant_id=world.tenant.pk, organization_id=one.pk, user_ids=[world.user.user_id])
    token = world.subject(organization=acme)
    assert world.claims(token)["org_id"] == acme.pk
    assert world.claims(token, organization=acme.pk)["org_id"] == acme.pk
    assert world.ask(token, organization=other.pk).json()["error_description"] == "parameter organization is not allowed for this client"
    assert world.ask(world.subject(), organization=acme.pk).status == 400
    remove_members(tenant_id=world.tenant.pk, organization_id=acme.pk, user_ids=[world.user.user_id])
    assert world.ask(token).json()["error"] == "access_denied"


# --- Clients ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": {"token_exchange": {"allow_any_profile_of_type": ["custom_authentication"]}}},
        {"settings": {"resource_server_identifier": None}},
        {"app_type": "regular_web"},
        {"is_first_party": False},
        {"token_endpoint_auth_method": "none", "grant_types": [GRANT]},
    ],
    ids=["exchange not allowed", "not linked to an API", "not the type of an API", "third party", "public"],
)
def test_a_client_that_does_not_meet_every_condition_cannot_exchange_tokens(world: World, changes: dict[str, Any]) -> None:
    token = world.subject()
    update_client(tenant_id=world.tenant.pk, client_id=world.orders.client_id, changes=changes)
    forget_all()
    secret = {"client_secret": None} if "token_endpoint_auth_method" in changes else {}
    answer = world.ask(token, **secret)
    assert (answer.status, answer.json()["error"]) == (403, "unauthorized_client")


def test_a_client_without_the_grant_type_cannot_exchange_tokens(world: World) -> None:
    token = world.subject()
    update_client(tenant_id=world.tenant.pk, client_id=world.orders.client_id, changes={"grant_types": ["client_credentials"]})
    forget_all()
    assert refused(world.ask(token)) == (403, "unauthorized_client", f"Grant type '{GRANT}' not allowed for the client.")


def test_a_client_cannot_exchange_tokens_that_were_issued_for_the_api_of_another_client(world: World) -> None:
    ledger = create_api_resource(tenant_id=world.tenant.pk, identifier=THIRD, scopes=SCOPES)
    thief = api_client(world.tenant, THIRD)
    for_users(world.tenant, thief, world.stock, "read")
    assert ledger.identifier not in (FIRST, SECOND)
    assert refused(world.ask(world.subject(), by=thief)) == INVALID


@pytest.mark.parametrize(
    ("identifier", "app_type"), [("urn:nowhere", "resource_server"), (FIRST, "regular_web"), ("management", "resource_server")]
)
def test_a_client_can_be_linked_only_to_an_api_of_its_tenant(world: World, identifier: str, app_type: str) -> None:
    named = ensure_management_api(world.tenant.pk).identifier if identifier == "management" else identifier
    with pytest.raises(Invalid, match="resource_server_identifier"):
        create_client(tenant_id=world.tenant.pk, name="x", app_type=app_type, settings={"resource_server_identifier": named})


# --- Actors ----------------------------------------------------------------------------------------------------------------------


def own_token(world: World) -> str:
    """Return a token that the client of the first API got for itself."""
    first = ApiResource.objects.of(world.tenant.pk).get(identifier=FIRST)
    create_client_grant(tenant_id=world.tenant.pk, client_id=world.orders.client_id, api_resource=first, scopes=["read"])
    forget_all()
    form = {
        "grant_type": "client_credentials",
        "audience": FIRST,
        "client_id": world.orders.client_id,
        "client_secret": world.orders.secret,
    }
    return str(ask_token(world.tenant, form).json()["access_token"])


def test_a_client_may_prove_with_its_own_token_that_it_is_the_actor(world: World) -> None:
    actor = own_token(world)
    claims = world.claims(world.subject(), actor_token=actor, actor_token_type=ACCESS_TOKEN)
    assert claims["act"] == {"sub": world.orders.client_id}


def test_a_token_with_a_user_as_actor_expires_no_later_than_the_actor_token(world: World) -> None:
    agent = some_user(world.tenant)
    code = code_of(login_of(world.tenant, world.application, agent, scope="read", audience=FIRST))
    first = ApiResource.objects.of(world.tenant.pk).get(identifier=FIRST)
    update_api_resource(tenant_id=world.tenant.pk, resource_id=first.pk, changes={"token_lifetime": 30})
    forget_all()
    actor = ask_token(world.tenant, code_form(world.application, code)).json()["access_token"]
    update_api_resource(tenant_id=world.tenant.pk, resource_id=first.pk, changes={"token_lifetime": 3000})
    forget_all()
    answer = world.ask(world.subject(), actor_token=actor, actor_token_type=ACCESS_TOKEN)
    claims = decoded(answer.json()["access_token"])[1]
    assert (claims["sub"], claims["act"]) == (world.user.user_id, {"sub": agent.user_id})
    assert answer.json()["expires_in"] <= 30


def test_actor_tokens_that_are_not_for_the_api_are_refused(world: World) -> None:
    subject, other = world.subject(), api_client(world.tenant, SECOND)
    form = {"grant_type": "client_credentials", "audience": SECOND, "client_id": other.client_id, "client_secret": other.secret}
    create_client_grant(tenant_id=world.tenant.pk, client_id=other.client_id, api_resource=world.stock, scopes=["read"])
    forget_all()
    wrong = [ask_token(world.tenant, form).json()["access_token"], world.subject(audience=SECOND), "made-up"]
    for token in wrong:
        answer = world.ask(subject, actor_token=token, actor_token_type=ACCESS_TOKEN)
        assert refused(answer) == (400, "invalid_request", "Unknown or invalid actor token.")
    assert refused(world.ask(subject, actor_token=wrong[0]))[2] == "Missing required parameter: actor_token_type"
    assert refused(world.ask(subject, actor_token_type=ACCESS_TOKEN))[2] == "Missing required parameter: actor_token"
    kind = "urn:ietf:params:oauth:token-type:saml2"
    assert refused(world.ask(subject, actor_token=wrong[0], actor_token_type=kind))[2] == f"Unsupported actor_token_type: {kind}"


def test_an_actor_token_that_itself_names_an_actor_is_refused(world: World) -> None:
    first = ApiResource.objects.of(world.tenant.pk).get(identifier=FIRST)
    for_users(world.tenant, world.orders, first, "read")
    delegated = world.ask(world.subject(), audience=FIRST).json()["access_token"]
    answer = world.ask(world.subject(), actor_token=delegated, actor_token_type=ACCESS_TOKEN)
    assert refused(answer) == (400, "invalid_request", "Unknown or invalid actor token.")


# --- Bound tokens ----------------------------------------------------------------------------------------------------------------


def test_the_exchange_of_a_bound_token_requires_its_key_and_binds_the_new_token(world: World) -> None:
    owner, thief = Prover(), Prover()
    address = f"{host_of(world.tenant).issuer}oauth/token"
    token = world.subject(headers={"DPoP": owner.proof("POST", address)})
    assert decoded(token)[1]["cnf"] == {"jkt": owner.thumbprint}
    assert refused(world.ask(token)) == INVALID
    assert refused(world.ask(token, headers={"DPoP": thief.proof("POST", address)})) == INVALID
    answer = world.ask(token, headers={"DPoP": owner.proof("POST", address)})
    assert (answer.status, answer.json()["token_type"]) == (200, "DPoP")
    assert decoded(answer.json()["access_token"])[1]["cnf"] == {"jkt": owner.thumbprint}


def test_a_proof_in_the_request_binds_the_new_token(world: World) -> None:
    prover = Prover()
    headers = {"DPoP": prover.proof("POST", f"{host_of(world.tenant).issuer}oauth/token")}
    assert decoded(world.ask(world.subject(), headers=headers).json()["access_token"])[1]["cnf"] == {"jkt": prover.thumbprint}


def test_the_discovery_document_lists_the_grant_type_of_token_exchange() -> None:
    assert GRANT in server().grant_types


# --- Algorithms ------------------------------------------------------------------------------------------------------------------


def test_the_new_token_is_signed_as_the_next_api_requires(world: World) -> None:
    changes = {"settings": {"signing_alg": "PS256"}}
    update_api_resource(tenant_id=world.tenant.pk, resource_id=world.stock.pk, changes=changes)
    forget_all()
    assert decoded(world.ask(world.subject()).json()["access_token"])[0]["alg"] == "PS256"


def test_a_token_signed_with_the_secret_of_an_api_is_refused(world: World) -> None:
    orders = ApiResource.objects.of(world.tenant.pk).get(identifier=FIRST)
    changes = {"settings": {"signing_alg": "HS256"}}
    update_api_resource(tenant_id=world.tenant.pk, resource_id=orders.pk, changes=changes, signing_secret="a secret of the API")
    forget_all()
    assert refused(world.ask(world.subject())) == INVALID
