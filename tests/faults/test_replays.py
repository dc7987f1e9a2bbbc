"""Two web processes accept each DPoP proof and each client assertion at most once while Redis hangs, is killed or loses its data."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from identity.models import Tenant
from tests.authapi.assertions import signer
from tests.authapi.client_auth.test_assertion_replay import ask
from tests.authapi.possession.test_over_processes import fresh_proof, send
from tests.authapi.proving import Prover
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.authapi import Registered, granted_client
from tests.faults.conftest import RedisServer


@pytest.fixture
def pair(committed_db: None, django_db_blocker: DjangoDbBlocker, redis_server: RedisServer) -> Iterator[list[WebProcess]]:
    """Two processes of one service with a Redis that the test may break."""
    environment = {"REDIS_URL": redis_server.url}
    with web_process("uvicorn", **environment) as first, web_process("uvicorn", **environment) as second:
        yield [first, second]


def taken(web: WebProcess, tenant: Tenant, registered: Registered) -> str:
    """Send a new proof to a process, and return the proof."""
    proof = fresh_proof(web, tenant, registered, Prover())
    assert send(web, tenant, registered, proof)[0] == 200
    return proof


def errors(pair: list[WebProcess], tenant: Tenant, registered: Registered, proof: str) -> set[str]:
    """Replay a proof at every process, and return the errors."""
    answers = [send(web, tenant, registered, proof) for web in pair]
    assert [status for status, _, _ in answers] == [400, 400], answers
    return {told["error"] for _, told, _ in answers}


REFUSALS = {"invalid_dpop_proof", "use_dpop_nonce"}


@pytest.mark.parametrize("fault", ["frozen", "flushed", "killed"])
def test_no_dpop_proof_is_accepted_twice_during_redis_failures(
    pair: list[WebProcess], tenant: Tenant, redis_server: RedisServer, fault: str
) -> None:
    breaks: dict[str, Callable[[], object]] = {
        "frozen": redis_server.freeze,
        "flushed": redis_server.client.flushall,
        "killed": redis_server.process.kill,
    }
    registered = granted_client(tenant)
    before = taken(pair[0], tenant, registered)
    assert errors(pair, tenant, registered, before) == {"invalid_dpop_proof"}
    breaks[fault]()
    # Redis may have lost its data. The replay is then refused because its nonce is unknown.
    assert errors(pair, tenant, registered, before) <= REFUSALS
    during = [taken(web, tenant, registered) for web in pair]
    for proof in during:
        assert errors(pair, tenant, registered, proof) <= REFUSALS
    if fault == "frozen":
        redis_server.thaw()
        for proof in (before, *during):
            assert errors(pair, tenant, registered, proof) <= REFUSALS
        assert taken(pair[0], tenant, registered)


def test_no_client_assertion_is_accepted_twice_while_redis_is_unavailable(
    pair: list[WebProcess], tenant: Tenant, redis_server: RedisServer
) -> None:
    client = signer(tenant)
    before = client.assertion()
    assert ask(pair[0], client, before)[0] == 200
    redis_server.process.kill()
    during = client.assertion()
    assert ask(pair[1], client, during)[0] == 200
    for used in (before, during):
        assert [ask(web, client, used)[0] for web in pair] == [401, 401]
