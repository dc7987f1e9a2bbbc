"""Floods and guesses from many IP addresses at the same time, over two processes and a real network. All processes share the counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pytest_django.plugin import DjangoDbBlocker

from authapi.grants.passwordless import PasswordlessGrant
from authapi.services.clients import create_client
from identity.services.connections import update_connection
from tests.authapi.passwordless.conftest import ADA, NUMBER, Door
from tests.authapi.passwordless.messages import jobs_of, last_code, wrong
from tests.conformance.web_process import WebProcess, web_process

_turns = count()


@pytest.fixture(scope="module")
def pair(django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[WebProcess]]:
    """Start two processes of one service, which write messages into a folder."""
    folder: Path = tmp_path_factory.mktemp("outbox")
    urls = {"SMS_URL": f"file:{folder}", "EMAIL_URL": f"file:{folder}"}
    with django_db_blocker.unblock(), web_process("uvicorn", **urls) as first, web_process("uvicorn", **urls) as second:
        yield [first, second]


def ask(web: WebProcess, door: Door, path: str, body: dict[str, Any], *, place: int) -> tuple[int, Any]:
    """Send a request to a process from a loopback address. Each loopback address has separate limits."""
    connection = HTTPConnection(*web.address, timeout=30, source_address=(f"127.0.{place // 250 + 1}.{place % 250 + 1}", 0))
    try:
        headers = {"Host": f"{door.tenant.pk}.example.test", "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps({**door.proof(), **body}), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def from_many_places(pair: list[WebProcess], door: Door, path: str, bodies: list[dict[str, Any]]) -> list[tuple[int, Any]]:
    """Send requests to both processes at the same time, each from another IP address."""
    places = [next(_turns) for _ in bodies]
    with ThreadPoolExecutor(max_workers=8) as threads:
        tries = zip(bodies, places, strict=True)
        asked = [threads.submit(ask, pair[place % 2], door, path, body, place=place) for body, place in tries]
        return [one.result(timeout=60) for one in asked]


def second_client(door: Door) -> dict[str, str]:
    """Create another client of the tenant with the same connections, and return its credentials."""
    client, secret = create_client(tenant_id=door.tenant.pk, name="Other", grant_types=door.client.grant_types)
    enabled = [door.client.client_id, client.client_id]
    for connection in (door.email, door.sms):
        update_connection(tenant_id=door.tenant.pk, connection_id=connection.pk, changes={"enabled_clients": enabled})
    return {"client_id": client.client_id, "client_secret": secret}


def test_one_number_gets_at_most_ten_messages_from_all_ip_addresses_and_clients(pair: list[WebProcess], door: Door) -> None:
    spellings = (NUMBER, "+49 151 12345678", "+49 (151) 123-45678")
    other = second_client(door)
    bodies = [{"connection": "sms", "phone_number": spellings[n % 3], **(other if n % 2 else {})} for n in range(16)]
    answers = from_many_places(pair, door, "/passwordless/start", bodies)
    assert sorted(status for status, _ in answers) == [200] * 10 + [429] * 6
    assert {told["error"] for status, told in answers if status == 429} == {"too_many_requests"}
    assert len(jobs_of(door.tenant.pk)) == 10


def test_a_code_is_invalid_after_ten_guesses_from_any_number_of_ip_addresses(pair: list[WebProcess], door: Door) -> None:
    code = door.code()
    fields = {"grant_type": PasswordlessGrant.name, "username": ADA, "realm": "email"}
    bodies = [{**fields, "otp": wrong(code, by=n)} for n in range(1, 13)]
    answers = from_many_places(pair, door, "/oauth/token", bodies)
    assert {status for status, _ in answers} == {403}
    assert from_many_places(pair, door, "/oauth/token", [{**fields, "otp": code}])[0][0] == 403


def test_guesses_at_one_email_address_through_all_clients_are_counted_together(pair: list[WebProcess], door: Door) -> None:
    other = second_client(door)
    codes = [door.code()]
    start = {"connection": "email", "email": ADA, "send": "code"}
    assert from_many_places(pair, door, "/passwordless/start", [{**start, **other}])[0][0] == 200
    codes.append(last_code(door.tenant.pk))
    fields = {"grant_type": PasswordlessGrant.name, "username": ADA, "realm": "email"}
    # Nine wrong guesses at each code stay within the limit of ten for one code. With two guesses more, the limit of 20 guesses at the
    # email address is reached.
    bodies = [{**fields, **(other if n % 2 else {}), "otp": wrong(codes[n % 2], by=n + 1)} for n in range(18)]
    assert {status for status, _ in from_many_places(pair, door, "/oauth/token", bodies)} == {403}
    rest = [{**fields, **(other if n % 2 else {}), "otp": "000000" if "000000" not in codes else "111111"} for n in range(6)]
    assert sorted(status for status, _ in from_many_places(pair, door, "/oauth/token", rest)) == [403] * 2 + [429] * 4
    right = [{**fields, "otp": codes[0]}, {**fields, **other, "otp": codes[1]}]
    assert [status for status, _ in from_many_places(pair, door, "/oauth/token", right)] == [429, 429]
