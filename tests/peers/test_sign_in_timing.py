"""The time of a response does not reveal whether an account exists. The tests measure it with the password hashes of production.

Each round sends one request for an existing and one for a missing account in random order, so that the load of the machine affects both
kinds alike. Each test compares every request of the first kind with every request of the second kind, and computes the share of pairs in
which the first request took longer. If both kinds take equally long, the expected share is 0.5, with a standard deviation of 0.075 for 30
requests of each kind. The tests accept shares from 0.2 to 0.8, which is four standard deviations in each direction. If the service computes
no hash for a missing account, existing accounts take longer, and the share is one.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import bcrypt
import pytest

from authapi.accounts import decoy_hashes
from authapi.models import Client
from authapi.views import HOT_ENDPOINTS
from foundation.secrets import hashing
from identity.imports.imported_passwords import bcrypt_form
from identity.models import Connection, PasswordCredential, Tenant
from tests.authapi.asgi_client import Received, send
from tests.factories.sign_in import people, person, web_client

pytestmark = pytest.mark.peer

REALM = "http://auth0.com/oauth/grant-type/password-realm"
PEOPLE = 30
LOW, HIGH = 0.2, 0.8
_addresses = count(1)


@pytest.fixture(autouse=True)
def _hashes_of_production(settings: Any) -> Iterator[None]:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher", "identity.hashers.ImportedPasswordHasher"]
    _forget()
    yield
    _forget()


def _forget() -> None:
    hashing._decoy.cache_clear()
    decoy_hashes._samples.clear()


@pytest.fixture
def client(tenant: Tenant) -> Client:
    return web_client(tenant, grant_types=[REALM], token_endpoint_auth_method="none")[0]


@pytest.fixture
def connection(tenant: Tenant, client: Client) -> Connection:
    """Create a connection with many users. Every second user has an imported hash, whose check takes longer."""
    connection = people(tenant, client, requires_username=True)
    kinds = (hashing.hashed("whatever"), bcrypt_form(bcrypt.hashpw(b"whatever", bcrypt.gensalt(10)).decode()))
    for number in range(PEOPLE):
        user = person(connection, email=f"here-{number}@example.test", username=f"here-{number}", password=None)
        PasswordCredential.objects.create(user=user, password_hash=kinds[number % 2])
    return connection


def ask(client: Client, path: str, body: dict[str, Any]) -> tuple[float, Received]:
    """Send a request, and return its duration in seconds and the response.

    Each request comes from a new IP address, for which no failed login was counted.
    """
    number = next(_addresses)
    sent = {"client_id": client.client_id, **body}
    started = time.perf_counter()
    answer = send(
        HOT_ENDPOINTS[path],
        "POST",
        host=f"{client.tenant_id}.example.test",
        headers={"Content-Type": "application/json"},
        chunks=(json.dumps(sent).encode(),),
        address=f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
    )
    return time.perf_counter() - started, answer


def share_of_slower(first: Callable[[int], float], second: Callable[[int], float]) -> float:
    """Measure `PEOPLE` requests of each kind. Return the share of all pairs in which the request of the first kind took longer."""
    drawn = random.Random(7)
    for number in range(3):
        first(number), second(number)
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(PEOPLE):
        for kind in drawn.sample((0, 1), 2):
            times[kind].append((first, second)[kind](number))
    slower = sum(one > other for one in times[0] for other in times[1])
    return slower / PEOPLE**2


def log_in(client: Client, name: str) -> float:
    body = {"grant_type": REALM, "realm": "people", "username": f"{name}@example.test", "password": "Not-The-Password-1"}
    took, answer = ask(client, "/oauth/token", body)
    assert (answer.status, answer.json()["error"]) == (403, "invalid_grant"), answer.body
    return took


def test_a_failed_login_takes_the_same_time_for_existing_and_missing_accounts(client: Client, connection: Connection) -> None:
    share = share_of_slower(lambda n: log_in(client, f"here-{n}"), lambda n: log_in(client, f"gone-{n}"))
    assert LOW < share < HIGH


def test_the_measurement_detects_that_no_hash_is_computed_for_a_missing_account(
    client: Client, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(n: int) -> float:
        with monkeypatch.context() as patched:
            patched.setattr("authapi.accounts.password_login.stand_in", lambda *_: "gibberish")
            patched.setattr("authapi.accounts.password_login.verified", lambda *_: (False, False))
            return log_in(client, f"gone-{n}")

    assert share_of_slower(lambda n: log_in(client, f"here-{n}"), careless) > HIGH


def test_a_refused_sign_up_takes_the_same_time_for_a_taken_address_and_a_taken_name(client: Client, connection: Connection) -> None:
    def sign_up(email: str, username: str) -> float:
        body = {"connection": "people", "email": f"{email}@example.test", "username": username, "password": "Correct-Horse-9-Battery"}
        took, answer = ask(client, "/dbconnections/signup", body)
        assert answer.json()["code"] == "invalid_signup", answer.body
        return took

    share = share_of_slower(lambda n: sign_up(f"here-{n}", f"gone-{n}"), lambda n: sign_up(f"gone-{n}", f"here-{n}"))
    assert LOW < share < HIGH


def test_a_password_reset_request_takes_the_same_time_for_existing_and_missing_accounts(client: Client, connection: Connection) -> None:
    def ask_for_reset(name: str) -> float:
        took, answer = ask(client, "/dbconnections/change_password", {"connection": "people", "email": f"{name}@example.test"})
        assert answer.status == 200
        return took

    share = share_of_slower(lambda n: ask_for_reset(f"here-{n}"), lambda n: ask_for_reset(f"gone-{n}"))
    assert LOW < share < HIGH
