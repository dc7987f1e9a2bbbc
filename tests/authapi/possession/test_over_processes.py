"""All processes together accept each proof once, with and without Redis. Streams require a proof.

A stream ends when the certificate of its token expires.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from typing import Any

import pytest
from pytest_django.plugin import DjangoDbBlocker

from authapi.services.api_resources import ensure_management_api
from authapi.services.resource_changes import update_api_resource
from events.client.credentials import ClientCredentials
from events.client.exchange import Deadlines
from events.client.proving import new_prover
from events.client.server import read_server
from events.client.subscription import Endurance, Opened, Subscription, Wanted
from identity.models import Tenant
from tests.authapi.asgi_client import ask_token
from tests.authapi.certificates import certificate, edge_key, forwarded
from tests.authapi.memory import forget_all
from tests.authapi.proving import Prover
from tests.authapi.token_forms import form_of
from tests.conformance.reader import Subscriber
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.authapi import Registered, granted_client, host_of
from tests.ports import free_port


@pytest.fixture(scope="module", params=["with Redis", "without Redis"])
def pair(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[list[WebProcess]]:
    """Start two processes of one service."""
    environment = {} if request.param == "with Redis" else {"REDIS_URL": f"redis://127.0.0.1:{free_port()}/0"}
    with django_db_blocker.unblock(), web_process("uvicorn", **environment) as first, web_process("uvicorn", **environment) as second:
        yield [first, second]


def send(web: WebProcess, tenant: Tenant, registered: Registered, proof: str) -> tuple[int, Any, str]:
    """Request a token from a process with a proof. Return the status, the body, and the nonce of the answer."""
    connection = HTTPConnection(*web.address, timeout=30)
    try:
        headers = {"Host": f"{tenant.pk}.example.test", "Content-Type": "application/json", "DPoP": proof}
        connection.request("POST", "/oauth/token", json.dumps(form_of(tenant, registered)), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()), answer.headers.get("DPoP-Nonce", "")
    finally:
        connection.close()


def fresh_proof(web: WebProcess, tenant: Tenant, registered: Registered, prover: Prover) -> str:
    """Return a proof with the current nonce.

    Both processes require a nonce, because they store used proofs in a Redis that has just started, or in PostgreSQL.
    """
    address = f"{host_of(tenant).issuer}oauth/token"
    _, _, nonce = send(web, tenant, registered, prover.proof("POST", address))
    return prover.proof("POST", address, nonce=nonce)


def test_a_proof_that_one_process_has_accepted_is_refused_by_the_other_process(pair: list[WebProcess], tenant: Tenant) -> None:
    registered, prover = granted_client(tenant), Prover()
    for first, second in (pair, pair[::-1]):
        proof = fresh_proof(first, tenant, registered, prover)
        assert send(first, tenant, registered, proof)[0] == 200
        for web in (second, first):
            status, told, _ = send(web, tenant, registered, proof)
            assert (status, told["error"], "used before" in told["error_description"]) == (400, "invalid_dpop_proof", True)


def test_only_one_of_many_simultaneous_uses_of_a_proof_in_two_processes_succeeds(pair: list[WebProcess], tenant: Tenant) -> None:
    registered, prover = granted_client(tenant), Prover()
    for _ in range(3):
        proof = fresh_proof(pair[0], tenant, registered, prover)
        with ThreadPoolExecutor(8) as attackers:
            statuses = list(attackers.map(lambda web, used=proof: send(web, tenant, registered, used)[0], pair * 4))
        assert sorted(statuses) == [200] + [400] * 7


@pytest.fixture(scope="module")
def mixed(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[list[WebProcess]]:
    """Start two processes, one of which has lost Redis."""
    away = f"redis://127.0.0.1:{free_port()}/0"
    with (
        django_db_blocker.unblock(),
        web_process("uvicorn") as first,
        web_process("uvicorn", REDIS_URL=away) as second,
    ):
        yield [first, second]


def test_a_proof_cannot_be_replayed_at_a_process_that_has_lost_redis(mixed: list[WebProcess], tenant: Tenant) -> None:
    registered, prover = granted_client(tenant), Prover()
    for first, second in (mixed, mixed[::-1]):
        proof = fresh_proof(first, tenant, registered, prover)
        assert send(first, tenant, registered, proof)[0] == 200
        assert send(second, tenant, registered, proof)[1]["error"] == "use_dpop_nonce"


# --- Streams ------------------------------------------------------------------------------------------------------------------


def subscribe(web: WebProcess, tenant: Tenant, token: str, scheme: str = "DPoP", **headers: str) -> Subscriber:
    sent = {"Host": f"{tenant.pk}.example.test", "Authorization": f"{scheme} {token}", **headers}
    return Subscriber(web.address, headers=sent)


def at_stream(tenant: Tenant) -> str:
    return f"{host_of(tenant).base_url}/events"


def refusal(stream: Subscriber) -> tuple[int, str]:
    with stream:
        return stream.status, str(stream.document().get("errorCode"))


def test_a_stream_opens_only_with_a_proof(pair: list[WebProcess], tenant: Tenant) -> None:
    web, registered, prover = pair[0], granted_client(tenant), Prover()
    proof = fresh_proof(web, tenant, registered, prover)
    token = send(web, tenant, registered, proof)[1]["access_token"]
    assert refusal(subscribe(web, tenant, token, "Bearer")) == (401, "invalid_token")
    assert refusal(subscribe(web, tenant, token)) == (401, "invalid_dpop_proof")
    with subscribe(web, tenant, token, DPoP=prover.proof("GET", at_stream(tenant), token=token, nonce="x.y")) as asked:
        assert (asked.status, asked.document()["errorCode"]) == (401, "use_dpop_nonce")
        prover.nonce = asked.headers["dpop-nonce"]
        assert 'DPoP error="use_dpop_nonce"' in asked.headers["www-authenticate"]
    thief = Prover(nonce=prover.nonce)
    assert refusal(subscribe(web, tenant, token, DPoP=thief.proof("GET", at_stream(tenant), token=token))) == (401, "invalid_token")
    good = prover.proof("GET", at_stream(tenant), token=token)
    with subscribe(web, tenant, token, DPoP=good) as stream:
        assert stream.opened().id
    assert refusal(subscribe(pair[1], tenant, token, DPoP=good)) == (401, "invalid_dpop_proof")


def test_a_stream_ends_when_the_certificate_of_its_token_expires(pair: list[WebProcess], tenant: Tenant) -> None:
    resource = ensure_management_api(tenant.pk)
    changes = {"settings": {"proof_of_possession": {"mechanism": "mtls", "required": True}}}
    update_api_resource(tenant_id=tenant.pk, resource_id=resource.pk, changes=changes)
    forget_all()
    key, pem = edge_key(tenant), certificate(ends=datetime.now(UTC) + timedelta(seconds=12))
    token = ask_token(tenant, form_of(tenant, granted_client(tenant)), headers=forwarded(key, pem)).json()["access_token"]
    assert refusal(subscribe(pair[0], tenant, token, "Bearer")) == (401, "invalid_token")
    with subscribe(pair[0], tenant, token, "Bearer", **forwarded(key, pem)) as stream:
        assert stream.opened().id
        assert stream.read_to_end(within=30)


def test_our_own_client_sends_a_proof_of_its_key(pair: list[WebProcess], tenant: Tenant) -> None:
    registered, prover = granted_client(tenant), new_prover()
    host, port = pair[0].address
    server = read_server(f"http://{tenant.pk}.example.test", connect_to=f"{host}:{port}")
    credentials = ClientCredentials(server, registered.client_id, registered.secret, deadlines=Deadlines())
    credentials.prover = prover
    reader = Subscription(server, credentials, Wanted(), endurance=Endurance(is_once=True))
    happening = next(one for one in reader.happenings() if isinstance(one, Opened))
    assert happening.status == 200
    # The same token is sent without a proof.
    with subscribe(pair[1], tenant, credentials.token(), "Bearer") as refused:
        assert refused.status == 401
