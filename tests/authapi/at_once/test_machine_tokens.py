"""Machine tokens that the event loop (the fast path) issues: its answers equal the answers of the plain path, which runs in a thread.

The fast path answers only requests that succeed. It leaves all other requests to the plain path ("the endpoint").
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from authapi.models import Client
from authapi.services.clients import revoke_client, rotate_client_secret
from authapi.tokens import keys
from authapi.tokens.fast_signing import plainly_signed, signing
from authapi.views.token import token
from identity.models import Tenant
from tests.authapi.asgi_client import Received
from tests.authapi.at_once.paths import FAST_TOKEN, LEFT, PLAIN_TOKEN, asked, headers_of, on_loop
from tests.authapi.forging import decoded
from tests.authapi.proving import Prover
from tests.authapi.token_forms import basic, form_of
from tests.factories.authapi import Registered, granted_client

DIFFERENT = ("jti", "iat", "exp")


@pytest.fixture(autouse=True)
def _signing_key(tenant: Tenant) -> None:
    """Create the keys of the tenant. Without keys, the fast path leaves the request to the endpoint, which creates keys."""
    keys.ensure_keys(tenant.pk)


def told(answer: Received) -> tuple[Any, ...]:
    """Return the status, the members of the body, the contents of the token, and the headers. Leave out values that differ in every
    token."""
    members = answer.json()
    header, claims = decoded(members.pop("access_token"))
    return answer.status, members, header, {name: value for name, value in claims.items() if name not in DIFFERENT}, headers_of(answer)


REQUESTS: dict[str, tuple[dict[str, Any], bool, bool]] = {
    "form": ({}, False, False),
    "JSON": ({}, True, False),
    "secret in the header": ({"client_id": None, "client_secret": None}, False, True),
    "fewer scopes": ({"scope": "read:events unknown"}, False, False),
    "no scope that is granted": ({"scope": "unknown"}, False, False),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_the_event_loop_gives_the_same_token_and_answer_as_a_thread(tenant: Tenant, name: str) -> None:
    changes, as_json, is_basic = REQUESTS[name]
    method = Client.AuthMethod.BASIC if is_basic else Client.AuthMethod.POST
    client = granted_client(tenant, ("read:events", "read:users"), token_endpoint_auth_method=method)
    form = form_of(tenant, client, **changes)
    headers = basic(client.client_id, client.secret) if is_basic else {}

    async def both() -> list[Received]:
        return [await asked(path, tenant, form, as_json=as_json, headers=headers) for path in (FAST_TOKEN, PLAIN_TOKEN)]

    fast, plain = on_loop(both)
    assert told(fast) == told(plain)
    assert list(fast.json()) == list(plain.json())


def test_a_proof_binds_a_token_on_either_path_and_is_accepted_once(tenant: Tenant) -> None:
    client, prover = granted_client(tenant), Prover()
    form = form_of(tenant, client)

    async def work() -> list[Received]:
        address = f"http://{tenant.pk}.example.test/oauth/token"
        wanted = await asked(token, tenant, form, headers={"DPoP": prover.proof("POST", address)})
        prover.nonce = wanted.headers.get("dpop-nonce", "")
        proofs = [{"DPoP": prover.proof("POST", address)} for _ in range(2)]
        answers = [await asked(path, tenant, form, headers=proof) for path, proof in zip((FAST_TOKEN, PLAIN_TOKEN), proofs, strict=True)]
        again = [await asked(path, tenant, form, headers=proof) for path, proof in zip((PLAIN_TOKEN, FAST_TOKEN), proofs, strict=True)]
        return answers + again

    fast, plain, *again = on_loop(work)
    assert told(fast) == told(plain)
    assert fast.json()["token_type"] == "DPoP"
    assert decoded(fast.json()["access_token"])[1]["cnf"] == {"jkt": prover.thumbprint}
    assert "dpop-nonce" in fast.headers
    assert [(each.status, each.json()["error"]) for each in again] == [(400, "invalid_dpop_proof")] * 2
    assert again[0].body == again[1].body


REFUSED: dict[str, dict[str, Any]] = {
    "wrong secret": {"client_secret": "wrong"},
    "unknown client": {"client_id": "nobody"},
    "unknown API": {"audience": "urn:unknown"},
    "unknown grant": {"grant_type": "telepathy"},
    "two authentication methods": {"client_assertion_type": "x", "client_assertion": "y"},
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_event_loop_leaves_refusals_to_the_endpoint(tenant: Tenant, name: str) -> None:
    client = granted_client(tenant)
    form = form_of(tenant, client, **REFUSED[name])
    answer = on_loop(lambda: asked(FAST_TOKEN, tenant, form))
    assert (answer.status, answer.json()) == (203, LEFT)


def test_the_event_loop_refuses_a_cached_client_after_its_revocation_or_a_new_secret(tenant: Tenant) -> None:
    rotated, revoked = granted_client(tenant), granted_client(tenant)

    async def statuses(*clients: Registered) -> list[int]:
        return [(await asked(token, tenant, forms[id(client)])).status for client in clients]

    forms = {id(client): form_of(tenant, client) for client in (rotated, revoked)}
    assert on_loop(lambda: statuses(rotated, revoked)) == [200, 200]
    _, secret = rotate_client_secret(tenant_id=tenant.pk, client_id=rotated.client_id)
    revoke_client(tenant_id=tenant.pk, client_id=revoked.client_id)

    renewed = Registered(rotated.client, secret)
    forms[id(renewed)] = form_of(tenant, renewed)
    assert on_loop(lambda: statuses(rotated, revoked, renewed)) == [401, 401, 200]


def test_each_request_is_counted_once_by_the_event_loop_or_by_a_thread(tenant: Tenant) -> None:
    form = form_of(tenant, granted_client(tenant))

    async def many() -> list[int]:
        answers = [await asked(token, tenant, form) for _ in range(40)]
        return [int(answer.headers["x-ratelimit-remaining"]) for answer in answers if answer.status == 200]

    left = on_loop(many)
    # The bucket refills between requests, so the remainder falls by at most one. If a request were counted twice, the remainder would fall
    # by two.
    taken = [before - after for before, after in pairwise(left)]
    assert len(left) == 40
    assert max(taken) == 1
    assert taken.count(1) > len(taken) // 2


def test_the_fast_signature_equals_the_signature_of_the_library(tenant: Tenant) -> None:
    kid, key = keys.signing_key(tenant.pk)
    header = {"alg": "RS256", "typ": "at+jwt", "kid": kid}
    assert signing(header, b'{"sub":"ada"}', key)() == plainly_signed(header, b'{"sub":"ada"}', key)


def test_the_library_signs_when_the_tenant_uses_another_algorithm(tenant: Tenant) -> None:
    kid, key = keys.signing_key(tenant.pk)
    made = signing({"alg": "RS512", "typ": "JWT", "kid": kid}, b"{}", key, algorithm="RS512")()
    assert made == plainly_signed({"alg": "RS512", "typ": "JWT", "kid": kid}, b"{}", key, algorithm="RS512")
