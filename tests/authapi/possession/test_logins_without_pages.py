"""Grants for one-time codes and passwords, used with proofs of possession. A proof binds the tokens. A request without a required proof
uses up no code."""

from __future__ import annotations

from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from authapi.grants.passwordless import PasswordlessGrant
from authapi.models import PasswordlessCode, SignIn
from authapi.services.api_resources import create_api_resource
from authapi.services.clients import update_client
from authapi.services.tenant_settings import update_tenant_settings
from identity.models import Tenant
from tests.authapi.asgi_client import Received, ask_token, get, read_profile
from tests.authapi.certificates import certificate, edge_key, forwarded
from tests.authapi.memory import forget_all
from tests.authapi.passwordless.conftest import Door, new_door
from tests.authapi.proving import Prover, settle_memory
from tests.factories.authapi import host_of
from tests.factories.sign_in import PASSWORD, people, person

API = "https://bank.example.test"
REQUIRED = "Tokens of this client must be bound: send a DPoP proof or a client certificate with the token request."


@pytest.fixture(autouse=True)
def _settled() -> None:
    settle_memory()


@pytest.fixture
def prover() -> Prover:
    return Prover()


@pytest.fixture
def door(tenant: Tenant) -> Door:
    return new_door(tenant)


@pytest.fixture
def public_door(tenant: Tenant) -> Door:
    return new_door(tenant, token_endpoint_auth_method="none")


def at_token(tenant: Tenant) -> str:
    return f"{host_of(tenant).issuer}oauth/token"


def redeemed(door: Door, code: str, prover: Prover, **changes: Any) -> Received:
    """Redeem a code with a proof, and again with the nonce if the service requires a nonce."""
    return prover.proven(lambda: door.redeem(code, headers={"DPoP": prover.proof("POST", at_token(door.tenant))}, **changes))


def require(door: Door) -> None:
    changes = {"settings": {"require_proof_of_possession": True}}
    update_client(tenant_id=door.tenant.pk, client_id=door.client.client_id, changes=changes)
    forget_all()


def profile(tenant: Tenant, token: str, prover: Prover | None, scheme: str = "DPoP") -> int:
    proof = {"DPoP": prover.proof("GET", f"{host_of(tenant).issuer}userinfo", token=token)} if prover else {}
    return read_profile(tenant, None, headers={"Authorization": f"{scheme} {token}", **proof}).status


def test_a_client_that_must_send_a_proof_gets_no_token_for_a_code_without_it(door: Door) -> None:
    require(door)
    code = door.code()
    answer = door.redeem(code)
    assert (answer.status, answer.json()["error_description"]) == (400, REQUIRED)
    # The refusal used up nothing: the code is still valid, no account was created, and no login was logged.
    assert PasswordlessCode.objects.of(door.tenant.pk).get().used_at is None
    assert not SignIn.objects.of(door.tenant.pk).filter(type__in=("s", "f", "ss")).exists()
    assert redeemed(door, code, Prover()).status == 200


def test_a_proof_binds_the_tokens_of_a_code(door: Door, prover: Prover) -> None:
    answer = redeemed(door, door.code(), prover)
    assert (answer.status, answer.json()["token_type"]) == (200, "DPoP")
    token = answer.json()["access_token"]
    assert profile(door.tenant, token, prover) == 200
    assert profile(door.tenant, token, Prover()) == 401
    assert profile(door.tenant, token, None, scheme="Bearer") == 401


def test_a_proof_binds_the_token_of_an_api(door: Door, prover: Prover) -> None:
    create_api_resource(tenant_id=door.tenant.pk, identifier=API, scopes=[{"value": "read", "description": ""}])
    answer = redeemed(door, door.code(), prover, audience=API, scope="read")
    published = KeySet.import_key_set(get(door.tenant, "/.well-known/jwks.json").json())
    claims = jwt.decode(answer.json()["access_token"], published, algorithms=["RS256"]).claims
    assert claims["cnf"] == {"jkt": prover.thumbprint}


def test_a_certificate_binds_the_tokens_of_a_code(door: Door) -> None:
    headers = forwarded(edge_key(door.tenant), certificate())
    answer = door.redeem(door.code(), headers=headers)
    assert (answer.status, answer.json()["token_type"]) == (200, "Bearer")
    token = answer.json()["access_token"]
    assert read_profile(door.tenant, token, headers=headers).status == 200
    assert read_profile(door.tenant, token).status == 401


def test_a_request_without_the_required_key_does_not_use_up_a_code(door: Door, prover: Prover) -> None:
    asked = {"mechanism": "dpop", "required": True}
    settings = {"proof_of_possession": asked}
    create_api_resource(tenant_id=door.tenant.pk, identifier=API, scopes=[{"value": "read", "description": ""}], settings=settings)
    code = door.code()
    answer = door.redeem(code, audience=API, scope="read")
    assert (answer.status, "send a DPoP proof" in answer.json()["error_description"]) == (400, True)
    assert redeemed(door, code, prover, audience=API, scope="read").status == 200


def test_an_invalid_proof_does_not_use_up_the_code(door: Door, prover: Prover) -> None:
    code, proof = door.code(), prover.proof("POST", at_token(door.tenant) + "x")
    assert door.redeem(code, headers={"DPoP": proof}).json()["error"] == "invalid_dpop_proof"
    assert redeemed(door, code, prover).status == 200


def test_the_refresh_token_of_a_public_client_is_bound_to_its_key(public_door: Door, prover: Prover) -> None:
    door = public_door
    answer = redeemed(door, door.code(), prover, scope="openid offline_access")
    assert answer.status == 200, answer.body
    form = {"grant_type": "refresh_token", "refresh_token": answer.json()["refresh_token"], **door.proof()}

    def refresh(with_key: Prover) -> Received:
        return with_key.proven(lambda: ask_token(door.tenant, form, headers={"DPoP": with_key.proof("POST", at_token(door.tenant))}))

    assert ask_token(door.tenant, form).status == 403
    assert refresh(Prover()).status == 403
    assert refresh(prover).json()["token_type"] == "DPoP"


def test_no_password_is_checked_if_a_required_proof_is_missing(door: Door, prover: Prover) -> None:
    connection = people(door.tenant, door.client)
    person(connection)
    update_tenant_settings(tenant_id=door.tenant.pk, changes={"default_directory": connection.name})
    changes = {"grant_types": ["password", PasswordlessGrant.name]}
    update_client(tenant_id=door.tenant.pk, client_id=door.client.client_id, changes=changes)
    require(door)
    form = {"grant_type": "password", "username": "ada@example.test", "password": PASSWORD, "scope": "openid", **door.proof()}
    answer = ask_token(door.tenant, {**form, "password": "wrong"})
    assert (answer.status, answer.json()["error_description"]) == (400, REQUIRED)
    assert not SignIn.objects.of(door.tenant.pk).exists()
    proven = prover.proven(lambda: ask_token(door.tenant, form, headers={"DPoP": prover.proof("POST", at_token(door.tenant))}))
    assert proven.json()["token_type"] == "DPoP"
