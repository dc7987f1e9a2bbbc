"""Requests that hash a password run in separate threads, for every encoding of their bodies."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from authapi.views import HOT_ENDPOINTS
from foundation.memory import executor
from foundation.secrets.hashing import HashingRefused, hashed, verified
from identity.models import Tenant
from tests.authapi.asgi_client import FORM, send
from tests.factories.sign_in import PASSWORD, people, person, web_client

REALM_GRANT = "http://auth0.com/oauth/grant-type/password-realm"


@pytest.fixture
def fields(tenant: Tenant) -> dict[str, str]:
    """The form fields of a login with the grant `password-realm`."""
    client, secret = web_client(tenant, grant_types=["password", REALM_GRANT])
    person(people(tenant, client))
    return {"client_id": client.client_id, "client_secret": secret, "realm": "people", "username": "ada@example.test"}


def percent_encoded(fields: dict[str, str]) -> bytes:
    """Return a form-encoded body in which every letter is percent-encoded."""
    return b"&".join(b"=".join("".join(f"%{byte:02x}" for byte in part.encode()).encode() for part in pair) for pair in fields.items())


def escaped(fields: dict[str, str]) -> bytes:
    """Return a JSON object in which every letter is an escape sequence."""
    pairs = (tuple("".join(f"\\u{ord(letter):04x}" for letter in part) for part in pair) for pair in fields.items())
    return ("{" + ",".join(f'"{name}":"{value}"' for name, value in pairs) + "}").encode()


@pytest.mark.parametrize(
    ("kind", "write"),
    [(FORM, percent_encoded), ("application/json", escaped), ("application/json", orjson.dumps)],
    ids=["percent-encoded form", "escaped JSON", "JSON"],
)
@pytest.mark.parametrize(("password", "status"), [(PASSWORD, 200), ("wrong", 403)])
def test_the_password_of_a_login_is_hashed_outside_the_fast_threads(
    tenant: Tenant, fields: dict[str, str], kind: str, write: Any, password: str, status: int
) -> None:
    body = write({"grant_type": REALM_GRANT, **fields, "password": password})
    assert b"password" not in body or write is orjson.dumps
    answer = send(HOT_ENDPOINTS["/oauth/token"], "POST", host=f"{tenant.pk}.example.test", headers={"Content-Type": kind}, chunks=(body,))
    assert answer.status == status, answer.json()


def test_the_password_of_a_sign_up_is_hashed_outside_the_fast_threads(tenant: Tenant, fields: dict[str, str]) -> None:
    sent = {"client_id": fields["client_id"], "connection": "people", "email": "new@example.test", "password": "Correct-Horse-7-Battery"}
    answer = send(
        HOT_ENDPOINTS["/dbconnections/signup"],
        "POST",
        host=f"{tenant.pk}.example.test",
        headers={"Content-Type": "application/json"},
        chunks=(escaped(sent),),
    )
    assert (answer.status, answer.json()["email"]) == (200, "new@example.test")


@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize("work", [lambda: hashed("x"), lambda: verified("x", "y")], ids=["hashing", "verifying"])
async def test_hashing_in_a_fast_thread_raises_an_error(work: Any) -> None:
    with pytest.raises(HashingRefused):
        await executor.run(work)


@pytest.mark.usefixtures("committed_db")
async def test_hashing_in_a_slow_thread_succeeds() -> None:
    assert (await executor.run(lambda: verified("x", hashed("x")), is_slow=True))[0]
