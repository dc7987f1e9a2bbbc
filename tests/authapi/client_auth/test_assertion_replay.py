"""An assertion is accepted once by all processes together, with and without Redis."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any

import pytest
from pytest_django.plugin import DjangoDbBlocker

from identity.models import Tenant
from tests.authapi.assertions import Signer, signer
from tests.conformance.web_process import WebProcess, web_process
from tests.ports import free_port


@pytest.fixture(scope="module", params=["with Redis", "without Redis"])
def pair(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[list[WebProcess]]:
    """Two processes of one service."""
    environment = {} if request.param == "with Redis" else {"REDIS_URL": f"redis://127.0.0.1:{free_port()}/0"}
    with django_db_blocker.unblock(), web_process("uvicorn", **environment) as first, web_process("uvicorn", **environment) as second:
        yield [first, second]


def ask(web: WebProcess, client: Signer, assertion: str) -> tuple[int, Any]:
    """Request a token from a process with an assertion."""
    connection = HTTPConnection(*web.address, timeout=30)
    try:
        headers = {"Host": f"{client.tenant.pk}.example.test", "Content-Type": "application/json"}
        connection.request("POST", "/oauth/token", json.dumps(client.form(assertion)), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_an_assertion_that_one_process_accepted_is_refused_by_the_other_process(pair: list[WebProcess], tenant: Tenant) -> None:
    client = signer(tenant)
    for first, second in (pair, pair[::-1]):
        assertion = client.assertion()
        assert ask(first, client, assertion)[0] == 200
        for web in (second, first):
            status, told = ask(web, client, assertion)
            assert (status, told["error"]) == (401, "access_denied")


def test_only_one_of_many_simultaneous_uses_in_two_processes_succeeds(pair: list[WebProcess], tenant: Tenant) -> None:
    client = signer(tenant)
    for _ in range(3):
        assertion = client.assertion()
        with ThreadPoolExecutor(8) as attackers:
            statuses = list(attackers.map(lambda web, used=assertion: ask(web, client, used)[0], pair * 4))
        assert sorted(statuses) == [200] + [401] * 7
