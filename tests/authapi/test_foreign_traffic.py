"""Anonymous requests over real sockets.

Such requests do not use up the rate limit of a tenant, and do not affect clients at other IP addresses.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import urlencode

import pytest
from pytest_django.plugin import DjangoDbBlocker

from identity.models import Tenant
from tests.authapi.token_forms import form_of
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.authapi import Registered, events_token, granted_client
from tests.factories.logins import public_client

TOO_MANY = "Too many requests. Check the X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset headers."


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: Any


@pytest.fixture
def registered(tenant: Tenant) -> Registered:
    return granted_client(tenant)


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    """A web process that allows each tenant 20 requests in 20 seconds."""
    with django_db_blocker.unblock(), web_process("uvicorn", RATE_LIMIT_BURST="20", RATE_LIMIT_PER_SECOND="1") as running:
        yield running


# Every address of 127.0.0.0/8 belongs to this machine. Each test has two addresses that no other test uses.
_numbers = count(1)


@pytest.fixture
def stranger() -> str:
    return f"127.0.1.{next(_numbers)}"


@pytest.fixture
def customer() -> str:
    return f"127.0.2.{next(_numbers)}"


def asked(web: WebProcess, tenant: Tenant, form: dict[str, Any], *, times: int, source: str, path: str = "/oauth/token") -> list[Answer]:
    """Send the same request `times` times on one connection from a source address."""
    answers = []
    headers = {"Host": f"{tenant.pk}.example.test", "Content-Type": "application/x-www-form-urlencoded"}
    with closing(http.client.HTTPConnection(*web.address, timeout=30, source_address=(source, 0))) as connection:
        for _ in range(times):
            connection.request("POST", path, urlencode(form), headers)
            answer = connection.getresponse()
            body = answer.read()
            headers_of_answer = {name.lower(): value for name, value in answer.getheaders()}
            answers.append(Answer(answer.status, headers_of_answer, json.loads(body) if body else None))
    return answers


def test_anonymous_requests_of_one_address_do_not_affect_clients_at_another_address(
    web: WebProcess, tenant: Tenant, registered: Registered, stranger: str, customer: str
) -> None:
    wrong, right = form_of(tenant, registered, client_secret="wrong"), form_of(tenant, registered)
    with ThreadPoolExecutor(4) as threads:
        floods = [threads.submit(asked, web, tenant, wrong, times=100, source=stranger) for _ in range(3)]
        valid = threads.submit(asked, web, tenant, right, times=8, source=customer).result()
        refused = [answer for flood in floods for answer in flood.result()]
    valid += asked(web, tenant, right, times=8, source=customer)

    assert {answer.status for answer in valid} == {200}
    assert {answer.headers["x-ratelimit-limit"] for answer in valid} == {"20"}
    assert {answer.status for answer in refused} == {401, 429}


def test_a_valid_client_with_the_ip_address_of_an_attacker_gets_its_tokens(
    web: WebProcess, tenant: Tenant, registered: Registered, stranger: str, customer: str
) -> None:
    wrong, right = form_of(tenant, registered, client_secret="wrong"), form_of(tenant, registered)
    # Send more than twice the limit, because a new minute with a new limit may begin during the requests.
    flood = asked(web, tenant, wrong, times=130, source=stranger)
    assert {answer.status for answer in asked(web, tenant, right, times=8, source=stranger)} == {200}

    last = next(answer for answer in flood if answer.status == 429)
    assert (last.status, last.body) == (429, {"error": "too_many_requests", "error_description": TOO_MANY})
    assert (last.headers["x-ratelimit-limit"], last.headers["x-ratelimit-remaining"]) == ("60", "0")
    assert int(last.headers["retry-after"]) >= 1
    assert "x-ratelimit-reset" in last.headers


def test_invalid_tokens_of_a_public_client_do_not_use_the_revocation_rate_of_the_tenant(
    web: WebProcess, tenant: Tenant, registered: Registered, stranger: str, customer: str
) -> None:
    made_up = {"client_id": public_client(tenant).client_id, "token": "made-up"}
    flood = asked(web, tenant, made_up, times=40, source=stranger, path="/oauth/revoke")
    assert {(answer.status, answer.headers["x-ratelimit-limit"]) for answer in flood} == {(200, "60")}

    own = {"client_id": registered.client_id, "client_secret": registered.secret, "token": "made-up"}
    valid = asked(web, tenant, own, times=8, source=customer, path="/oauth/revoke")
    assert {(answer.status, answer.headers["x-ratelimit-limit"]) for answer in valid} == {(200, "20")}


def test_refused_tokens_do_not_affect_the_stream_or_the_management_interface(
    web: WebProcess, tenant: Tenant, stranger: str, customer: str
) -> None:
    flood = {path: tokens_shown(web, tenant, path, "nonsense", times=130, source=stranger) for path in ("/api/v2/events", "/api/v2/users")}
    good = events_token(tenant, "read:events", "read:users")
    for answers in flood.values():
        assert {answer.status for answer in answers} <= {401, 429}
        refused = next(answer for answer in answers if answer.status == 429)
        assert (refused.body["message"], refused.headers["x-ratelimit-limit"]) == (TOO_MANY, "60")
        assert int(refused.headers["retry-after"]) >= 1
    for source in (stranger, customer):
        answers = tokens_shown(web, tenant, "/api/v2/users", good, times=5, source=source)
        assert [answer.status for answer in answers] == [200] * 5
    # An invalid query with a valid token is refused after the token check, so the request counts against the rate of the tenant.
    odd = tokens_shown(web, tenant, "/api/v2/events?colour=red", good, times=1, source=stranger)[0]
    assert (odd.status, odd.headers["x-ratelimit-limit"], odd.headers["x-ratelimit-remaining"]) == (400, "20", "19")


def tokens_shown(web: WebProcess, tenant: Tenant, path: str, token: str, *, times: int, source: str) -> list[Answer]:
    answers = []
    with closing(http.client.HTTPConnection(*web.address, timeout=30, source_address=(source, 0))) as connection:
        for _ in range(times):
            connection.request("GET", path, headers={"Host": f"{tenant.pk}.example.test", "Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            body = answer.read()
            answers.append(Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, json.loads(body)))
    return answers
