"""Bound tokens at the management interface and at `/events`: each request must prove possession of the key or certificate."""

from __future__ import annotations

from urllib.parse import unquote

import orjson
import pytest

from authapi.services.api_resources import ensure_management_api
from authapi.services.resource_changes import update_api_resource
from authapi.tokens.verifying import InvalidToken, verify_access_token
from identity.models import Tenant
from tests.authapi.asgi_client import ask_token
from tests.authapi.browser import Browser, Page
from tests.authapi.certificates import certificate, edge_key, forwarded
from tests.authapi.memory import forget_all
from tests.authapi.proving import Prover, settle_memory
from tests.authapi.token_forms import form_of
from tests.factories.authapi import granted_client, host_of

SCOPES = ("read:users", "read:events", "create:users")


@pytest.fixture(autouse=True)
def _settled() -> None:
    settle_memory()


@pytest.fixture
def prover() -> Prover:
    return Prover()


@pytest.fixture
def token(tenant: Tenant, prover: Prover) -> str:
    """Return a token that is bound to the key and is valid at the management interface."""
    address = f"{host_of(tenant).issuer}oauth/token"
    answer = ask_token(tenant, form_of(tenant, granted_client(tenant, SCOPES)), headers={"DPoP": prover.proof("POST", address)})
    assert answer.json()["token_type"] == "DPoP"
    return str(answer.json()["access_token"])


def read(tenant: Tenant, token: str, proof: str = "", *, scheme: str = "DPoP", path: str = "/api/v2/users", **headers: str) -> Page:
    sent = {"Authorization": f"{scheme} {token}", **({"DPoP": proof} if proof else {}), **headers}
    return Browser(tenant).send("GET", unquote(path), headers=sent)


def at(tenant: Tenant, path: str = "/api/v2/users") -> str:
    return host_of(tenant).issuer.rstrip("/") + path


def error_of(page: Page) -> tuple[int, str]:
    return page.status, orjson.loads(page.body).get("errorCode", "")


def test_a_bound_token_is_accepted_with_a_proof(tenant: Tenant, token: str, prover: Prover) -> None:
    assert read(tenant, token, prover.proof("GET", at(tenant), token=token)).status == 200


def test_a_proof_must_name_the_path_in_its_percent_encoded_form(tenant: Tenant, token: str, prover: Prover) -> None:
    path = "/api/v2/users/database%7Cnobody"
    assert read(tenant, token, prover.proof("GET", at(tenant, path), token=token), path=path).status == 404
    assert read(tenant, token, prover.proof("GET", at(tenant), token=token), path=path).status == 401


def test_a_stolen_token_is_refused(tenant: Tenant, token: str, prover: Prover) -> None:
    good = prover.proof("GET", at(tenant), token=token)
    attempts = {
        "as a bearer token": (read(tenant, token, scheme="Bearer"), "invalid_token"),
        "as a bearer token with a proof": (read(tenant, token, good, scheme="Bearer"), "invalid_token"),
        "without a proof": (read(tenant, token), "invalid_dpop_proof"),
        "with another key": (read(tenant, token, Prover().proof("GET", at(tenant), token=token)), "invalid_token"),
        "with a proof for another address": (
            read(tenant, token, prover.proof("GET", at(tenant, "/api/v2/clients"), token=token)),
            "invalid_dpop_proof",
        ),
        "with a proof for another method": (read(tenant, token, prover.proof("POST", at(tenant), token=token)), "invalid_dpop_proof"),
        "with a proof for another token": (read(tenant, token, prover.proof("GET", at(tenant), token="x")), "invalid_dpop_proof"),
        "with an old nonce": (read(tenant, token, prover.proof("GET", at(tenant), token=token, nonce="x.y")), "use_dpop_nonce"),
    }
    for name, (page, code) in attempts.items():
        assert error_of(page) == (401, code), name
        assert f'error="{code}"' in page.headers["www-authenticate"], name
    assert attempts["with an old nonce"][0].headers["dpop-nonce"]
    assert read(tenant, token, good).status == 200
    assert error_of(read(tenant, token, good)) == (401, "invalid_dpop_proof")


def test_a_route_that_does_not_check_possession_refuses_a_bound_token(tenant: Tenant, token: str) -> None:
    assert verify_access_token(token, host=host_of(tenant), takes_bound=True).confirmation
    with pytest.raises(InvalidToken):
        verify_access_token(token, host=host_of(tenant))


def test_an_unbound_token_that_is_sent_with_the_dpop_scheme_is_refused(tenant: Tenant, prover: Prover) -> None:
    plain = str(ask_token(tenant, form_of(tenant, granted_client(tenant, SCOPES))).json()["access_token"])
    assert error_of(read(tenant, plain, prover.proof("GET", at(tenant), token=plain))) == (401, "invalid_token")
    assert read(tenant, plain, scheme="Bearer").status == 200


# --- Certificates -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def asks_for_certificates(tenant: Tenant) -> None:
    resource = ensure_management_api(tenant.pk)
    changes = {"settings": {"proof_of_possession": {"mechanism": "mtls", "required": True}}}
    update_api_resource(tenant_id=tenant.pk, resource_id=resource.pk, changes=changes)
    forget_all()


def bound_to_certificate(tenant: Tenant, key: str, pem: str) -> str:
    answer = ask_token(tenant, form_of(tenant, granted_client(tenant, SCOPES)), headers=forwarded(key, pem))
    assert (answer.status, answer.json()["token_type"]) == (200, "Bearer"), answer.body
    return str(answer.json()["access_token"])


@pytest.mark.usefixtures("asks_for_certificates")
def test_a_token_bound_to_a_certificate_is_accepted_with_the_certificate(tenant: Tenant) -> None:
    key, pem = edge_key(tenant), certificate()
    token = bound_to_certificate(tenant, key, pem)
    assert read(tenant, token, scheme="Bearer", **forwarded(key, pem)).status == 200
    for headers in ({}, forwarded("wrong", pem), forwarded(key, certificate("another"))):
        assert error_of(read(tenant, token, scheme="Bearer", **headers)) == (401, "invalid_token")
    assert ask_token(tenant, form_of(tenant, granted_client(tenant, SCOPES))).status == 400


def test_a_certificate_binds_a_management_token_only_if_the_api_requires_bound_tokens(tenant: Tenant) -> None:
    token = bound_to_certificate(tenant, edge_key(tenant), certificate())
    assert read(tenant, token, scheme="Bearer").status == 200
