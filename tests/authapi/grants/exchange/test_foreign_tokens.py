"""Tokens of other issuers that log users in: which tokens are accepted, which user a token identifies, and how often it can be used."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from authapi.accounts.suspicion import EXCHANGE
from authapi.models import SignIn, TenantSettings, TokenExchangeProfile
from authapi.services.api_resources import create_api_resource
from authapi.services.clients import create_client, update_client
from authapi.services.token_exchange import create_profile, update_profile
from authapi.upstream import metadata
from identity.models import Connection, Tenant, User
from identity.services.connections import create_connection
from identity.services.memberships import add_connection, add_members
from identity.services.organizations import create_organization
from identity.services.users import block_user, create_user
from tests.authapi.asgi_client import Received, ask_token
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.proving import Prover, settle_memory
from tests.factories.authapi import Registered, host_of
from tests.factories.provider import Provider
from tests.factories.provider import provider as running_provider

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
KIND = "urn:acme:legacy-token"
API, AUDIENCE, ISSUER = "urn:orders", "urn:our-service", "https://issuer.example.test/"
KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
INVALID = (400, "invalid_request", "Unknown or invalid subject token.")


@dataclass
class World:
    """A client, a connection whose users have accounts in another system, and an issuer. A token of the issuer logs such a user in."""

    tenant: Tenant
    client: Registered
    connection: Connection
    profile: TokenExchangeProfile
    user: User
    used: list[str] = field(default_factory=list)

    def token(self, *, key: Any = KEY, header: dict[str, Any] | None = None, **changes: Any) -> str:
        now = int(time.time())
        good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 60, "jti": f"{now}.{len(self.used)}"}
        self.used.append("")
        claims = {name: value for name, value in (good | changes).items() if value is not None}
        named = {"alg": "RS256", "typ": "JWT", "kid": "one", **(header or {})}
        named = {name: value for name, value in named.items() if value is not None}
        return jwt.encode(named, claims, key, algorithms=[str(named["alg"])])

    def ask(self, token: str, *, headers: dict[str, str] | None = None, address: str = "192.0.2.1", **changes: Any) -> Received:
        good = {
            "grant_type": GRANT,
            "client_id": self.client.client_id,
            "client_secret": self.client.secret or None,
            "subject_token": token,
            "subject_token_type": KIND,
            "audience": API,
            "scope": "openid read offline_access",
        }
        form = {name: value for name, value in {**good, **changes}.items() if value is not None}
        return ask_token(self.tenant, form, headers=headers, address=address)

    def change(self, **columns: Any) -> None:
        self.profile = update_profile(tenant_id=self.tenant.pk, profile_id=self.profile.pk, changes=columns)
        forget_all()


@pytest.fixture
def world(tenant: Tenant) -> World:
    settle_memory()
    settings = {"token_exchange": {"allow_any_profile_of_type": ["custom_authentication"]}}
    client = Registered(*create_client(tenant_id=tenant.pk, name="Shop", grant_types=[GRANT, "refresh_token"], settings=settings))
    scopes = [{"value": "read", "description": ""}]
    create_api_resource(tenant_id=tenant.pk, identifier=API, scopes=scopes, settings={"allow_offline_access": True})
    connection = create_connection(
        tenant_id=tenant.pk, name="acme", strategy="oidc", options={"client_id": "x", "issuer": ISSUER}, enabled_clients=[client.client_id]
    )
    user = create_user(tenant_id=tenant.pk, connection=connection, identifier="ada", email="ada@acme.example.test", email_verified=True)
    profile = create_profile(
        tenant_id=tenant.pk,
        name="Legacy tokens",
        subject_token_type=KIND,
        connection_id=connection.pk,
        issuer=ISSUER,
        audience=AUDIENCE,
        public_keys=[KEY.as_dict(private=False)],
    )
    return World(tenant, client, connection, profile, user)


def refused(answer: Received) -> tuple[int, str, str]:
    body = answer.json()
    return answer.status, body["error"], body["error_description"]


def reasons(world: World) -> list[str]:
    return list(SignIn.objects.of(world.tenant.pk).filter(type="fecte").values_list("description", flat=True))


# --- Answers ---------------------------------------------------------------------------------------------------------------------


def test_a_token_logs_its_user_in(world: World) -> None:
    answer = world.ask(world.token())
    assert answer.status == 200, answer.body
    body = answer.json()
    assert body["issued_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
    assert {"access_token", "id_token", "refresh_token"} <= body.keys()
    claims = decoded(body["access_token"])[1]
    assert (claims["sub"], claims["gty"], claims["scope"]) == (world.user.user_id, "token-exchange", "openid read offline_access")
    assert decoded(body["id_token"])[1]["amr"] == ["federated"]
    line = SignIn.objects.of(world.tenant.pk).get(type="secte")
    assert (line.user_id, line.connection, line.details["profile"]) == (world.user.user_id, "acme", world.profile.pk)


def test_a_token_is_accepted_once_unless_the_profile_allows_repeated_use(world: World) -> None:
    for token in (world.token(), world.token(jti=None)):
        assert world.ask(token).status == 200
        assert refused(world.ask(token)) == INVALID
    world.change(is_single_use=False)
    token = world.token()
    assert [world.ask(token).status for _ in range(2)] == [200, 200]


def test_reusing_an_older_token_does_not_restore_an_older_profile(world: World) -> None:
    world.change(creates_users=True)
    old = world.token(name="Ada Old")
    assert [world.ask(token).status for token in (old, world.token(name="Ada New"))] == [200, 200]
    assert refused(world.ask(old)) == INVALID
    world.user.refresh_from_db()
    assert world.user.name == "Ada New"


def test_a_refused_token_does_not_count_as_used(world: World) -> None:
    token = world.token(nbf=int(time.time()) + 100)
    assert refused(world.ask(token)) == INVALID
    later = world.token(jti="the same", sub="nobody")
    assert refused(world.ask(later)) == INVALID
    assert world.ask(world.token(jti="the same")).status == 200


# --- Refused tokens --------------------------------------------------------------------------------------------------------------

_NOW = int(time.time())


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example.test/"},
        {"iss": None},
        {"aud": "another service"},
        {"aud": None},
        {"aud": ["another service"]},
        {"exp": _NOW - 100},
        {"exp": None},
        {"exp": "soon"},
        {"iat": _NOW + 10_000},
        {"nbf": _NOW + 10_000},
        {"sub": None},
        {"sub": ""},
        {"sub": "x" * 256},
        {"sub": "ada\x00"},
        {"sub": 7},
        {"sub": "nobody"},
        {"sub": "acme|ada"},
        {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}},
        {"act": {"sub": "another"}},
        {"may_act": {"sub": "another"}},
        {"may_act": "anybody"},
        {"cnf": {"jkt": "x" * 43}},
        {"cnf": {}},
        {"cnf": "x"},
        {"header": {"typ": "logout+jwt"}},
        {"header": {"typ": "dpop+jwt"}},
        {"header": {"kid": "two"}},
        {"key": RSAKey.generate_key(2048, {"kid": "one"})},
        {"key": OctKey.import_key("x" * 40), "header": {"alg": "HS256"}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_token_with_any_single_defect_gets_the_same_refusal(world: World, changes: dict[str, Any]) -> None:
    assert refused(world.ask(world.token(**changes))) == INVALID
    assert len(reasons(world)) == 1
    assert not SignIn.objects.of(world.tenant.pk).filter(type="secte").exists()


@pytest.mark.parametrize("token", ["", "made-up", "a.b.c", "a.b", f"{'x' * 20_000}.b.c"])
def test_a_malformed_token_is_refused(world: World, token: str) -> None:
    assert world.ask(token).status == 400


def test_a_token_that_allows_the_client_as_its_actor_is_accepted(world: World) -> None:
    assert world.ask(world.token(may_act={"sub": world.client.client_id})).status == 200


def test_a_bound_token_requires_the_proof_of_its_key(world: World) -> None:
    prover = Prover()
    token = world.token(cnf={"jkt": prover.thumbprint})
    assert refused(world.ask(token)) == INVALID
    headers = {"DPoP": prover.proof("POST", f"{host_of(world.tenant).issuer}oauth/token")}
    assert world.ask(token, headers=headers).json()["token_type"] == "DPoP"


@pytest.fixture
def issuer() -> Iterator[Provider]:
    metadata.documents.clear()
    with running_provider() as running:
        yield running
    metadata.documents.clear()


def test_keys_are_read_from_the_jwks_uri_of_the_profile(world: World, issuer: Provider) -> None:
    world.change(public_keys=[], jwks_uri=f"{issuer.issuer}/jwks")
    assert world.ask(world.token(key=issuer.key)).status == 200
    assert refused(world.ask(world.token())) == INVALID
    metadata.documents.clear()
    issuer.answers["/jwks"] = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"
    assert world.ask(world.token(key=issuer.key)).json()["error"] == "temporarily_unavailable"


# --- The user of a token ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"email": "ADA@acme.example.test", "email_verified": True}, 200),
        ({"email": "ada@acme.example.test"}, 400),
        ({"email": "ada@acme.example.test", "email_verified": "true"}, 400),
        ({"email": "nobody@acme.example.test", "email_verified": True}, 400),
        ({"email": 7, "email_verified": True}, 400),
        ({}, 400),
    ],
)
def test_an_email_address_identifies_a_user_only_if_the_issuer_has_verified_it(world: World, claims: dict[str, Any], status: int) -> None:
    world.change(user_claim="email")
    assert world.ask(world.token(**claims)).status == status


def test_an_email_address_that_is_unverified_in_our_account_identifies_no_user(world: World) -> None:
    world.change(user_claim="email")
    create_user(
        tenant_id=world.tenant.pk, connection=world.connection, identifier="eve", email="eve@acme.example.test", email_verified=False
    )
    assert refused(world.ask(world.token(email="eve@acme.example.test", email_verified=True))) == INVALID


def test_a_user_of_another_connection_with_the_same_subject_is_not_logged_in(world: World) -> None:
    other = create_connection(tenant_id=world.tenant.pk, name="other", strategy="oidc", options={"client_id": "x", "issuer": ISSUER})
    create_user(tenant_id=world.tenant.pk, connection=other, identifier="grace", email="grace@acme.example.test")
    assert refused(world.ask(world.token(sub="grace"))) == INVALID


def test_users_are_created_if_the_profile_allows_it(world: World) -> None:
    assert refused(world.ask(world.token(sub="grace"))) == INVALID
    world.change(creates_users=True)
    answer = world.ask(world.token(sub="grace", name="Grace", email="grace@acme.example.test"))
    claims = decoded(answer.json()["access_token"])[1]
    made = User.objects.of(world.tenant.pk).get(user_id=claims["sub"])
    assert (made.name, made.connection_id, made.email_verified) == ("Grace", world.connection.pk, False)


def test_the_refusal_says_that_a_user_is_blocked(world: World) -> None:
    block_user(tenant_id=world.tenant.pk, user_id=world.user.user_id)
    assert refused(world.ask(world.token())) == (403, "unauthorized", "user is blocked")


def test_a_login_for_an_organization_requires_membership(world: World) -> None:
    update_client(tenant_id=world.tenant.pk, client_id=world.client.client_id, changes={"settings": {"organization_usage": "require"}})
    acme = create_organization(tenant_id=world.tenant.pk, name="acme")
    forget_all()
    assert refused(world.ask(world.token()))[2] == "parameter organization is required for this client"
    assert world.ask(world.token(), organization=acme.pk).status == 400
    add_connection(tenant_id=world.tenant.pk, organization_id=acme.pk, connection_id=world.connection.pk)
    assert world.ask(world.token(), organization=acme.pk).json()["error"] == "access_denied"
    add_members(tenant_id=world.tenant.pk, organization_id=acme.pk, user_ids=[world.user.user_id])
    assert decoded(world.ask(world.token(), organization=acme.pk).json()["access_token"])[1]["org_id"] == acme.pk


# --- Clients ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"settings": {"token_exchange": {"allow_any_profile_of_type": []}}}, "unauthorized_client"),
        ({"settings": {"token_exchange": {"allow_any_profile_of_type": ["on_behalf_of_token_exchange"]}}}, "unauthorized_client"),
        ({"is_first_party": False}, "unauthorized_client"),
        ({"grant_types": ["refresh_token"]}, "unauthorized_client"),
    ],
    ids=["no exchange allowed", "another exchange allowed", "third party", "no grant type"],
)
def test_a_client_that_may_not_exchange_tokens_is_refused(world: World, changes: dict[str, Any], error: str) -> None:
    update_client(tenant_id=world.tenant.pk, client_id=world.client.client_id, changes=changes)
    forget_all()
    answer = world.ask(world.token())
    assert (answer.status, answer.json()["error"]) == (403, error)


def test_a_client_for_which_the_connection_is_not_enabled_is_refused(world: World) -> None:
    Connection.objects.of(world.tenant.pk).get(pk=world.connection.pk)
    world.connection.enabled_clients = []
    world.connection.save()
    assert refused(world.ask(world.token()))[2] == "The connection was not found or is not enabled for the client."


def test_a_public_client_can_be_allowed_to_exchange_tokens(world: World) -> None:
    update_client(tenant_id=world.tenant.pk, client_id=world.client.client_id, changes={"token_endpoint_auth_method": "none"})
    forget_all()
    assert world.ask(world.token(), client_secret=None).status == 200


def test_an_actor_token_is_refused_in_a_login(world: World) -> None:
    answer = world.ask(world.token(), actor_token=world.token(), actor_token_type=KIND)
    assert (answer.status, answer.json()["error"]) == (400, "invalid_request")


def test_an_ip_address_with_many_refused_tokens_is_blocked_for_a_while(world: World) -> None:
    stage = {EXCHANGE: {"max_attempts": 2, "rate": 600_000}}
    TenantSettings(tenant=world.tenant, attack_protection={"suspicious_ip_throttling": {"stage": stage}}).save()
    forget_all()
    for _ in range(2):
        assert refused(world.ask(world.token(sub="nobody"))) == INVALID
    answer = world.ask(world.token())
    assert (answer.status, answer.json()["error"]) == (429, "too_many_attempts")
    assert world.ask(world.token(), address="192.0.2.99").status == 200
