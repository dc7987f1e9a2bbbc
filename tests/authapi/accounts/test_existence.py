"""No request may reveal whether an account exists.

With and without the account, the service runs the same statements and checks the same number of hashes.

These tests count statements and hashes in the web application. They do not measure time, because time varies on a busy machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from django.db.backends.utils import CursorWrapper

from authapi.edge import buckets
from authapi.grants.passwordless import PasswordlessGrant
from authapi.models import Client
from authapi.protocols.legacy.opting_in import LEGACY_GRANTS
from authapi.views import HOT_ENDPOINTS
from authapi.views.legacy_endpoints import LEGACY_ENDPOINTS
from foundation.secrets import hashing
from identity.models import Tenant
from identity.services.connections import create_connection
from identity.services.users import create_user
from tests.authapi.asgi_client import Received, send
from tests.authapi.browser import Browser
from tests.authapi.memory import forget_all
from tests.factories.sign_in import CALLBACK, people, person, web_client

HERE, GONE = "here@example.test", "gone@example.test"
NUMBER_HERE, NUMBER_GONE = "+4915112345678", "+4915112345679"
ORIGIN = "https://app.example.test"
REALM = "http://auth0.com/oauth/grant-type/password-realm"
OTP = PasswordlessGrant.name
PROVEN_LATER = {"code_challenge": "a" * 43, "code_challenge_method": "S256"}
# Each process caches rows of these tables for all requests, and reads the rows again periodically. The statements that read these tables
# are not counted.
_TABLES = ("authapi_tenantsettings", "authapi_brandingtheme", "authapi_customtext", "authapi_client", "authapi_signingkey")
_REMEMBERED = re.compile(f'FROM "({"|".join((*_TABLES, "identity_tenant", "identity_customdomain"))})"')
# Values that are part of the text of a statement, such as names of savepoints and cursors.
_INLINE = re.compile(r"\bs\d+_x\d+\b")


@pytest.fixture
def client(tenant: Tenant, settings: Any) -> Iterator[Client]:
    """A client that allows every method of login. Each of its connections has one account, with the address `HERE` or `NUMBER_HERE`."""
    settings.SMS_SENDER = {"kind": "console"}
    client, _ = web_client(
        tenant,
        grant_types=["authorization_code", REALM, OTP, *LEGACY_GRANTS],
        redirect_uris=CALLBACK,
        token_endpoint_auth_method="none",
        settings={"cross_origin_authentication": True, "web_origins": [ORIGIN]},
    )
    person(people(tenant, client), email=HERE)
    for strategy, address in (("email", {"email": HERE}), ("sms", {"phone_number": NUMBER_HERE})):
        made = create_connection(
            tenant_id=tenant.pk, name=strategy, strategy=strategy, enabled_clients=[client.client_id], options={"disable_signup": True}
        )
        create_user(tenant_id=tenant.pk, connection=made, **address)
    buckets.buckets.cache_clear()
    yield client
    buckets.buckets.cache_clear()


def ask(client: Client, path: str, **body: Any) -> Received:
    endpoint = HOT_ENDPOINTS.get(path) or LEGACY_ENDPOINTS[path]
    raw = json.dumps({"client_id": client.client_id, **body}).encode()
    headers = {"Content-Type": "application/json", "Origin": ORIGIN}
    return send(endpoint, "POST", host=f"{client.tenant_id}.example.test", headers=headers, chunks=(raw,))


Asking = Callable[[Client, str], Received]


def by_password(path: str, **body: Any) -> Asking:
    return lambda client, name: ask(client, path, username=name, password="Not-The-Password-1", **body)


def by_code(path: str, **body: Any) -> Asking:
    return lambda client, name: ask(client, path, username=name, **body)


REQUESTS: dict[str, Asking] = {
    "a code by mail": lambda client, name: ask(client, "/passwordless/start", connection="email", email=name, send="code"),
    "a link by mail": lambda client, name: ask(client, "/passwordless/start", connection="email", email=name, authParams=PROVEN_LATER),
    "a code by text message": lambda client, name: ask(client, "/passwordless/start", connection="sms", phone_number=number_of(name)),
    "a challenge": lambda client, name: ask(client, "/otp/challenge", connection="email", email=name),
    "a new password": lambda client, name: ask(client, "/dbconnections/change_password", connection="people", email=name),
    "a password in the application's form": by_password("/co/authenticate", credential_type=REALM, realm="people"),
    "a code in the application's form": by_code("/co/authenticate", credential_type=OTP, realm="email", otp="000000"),
    "the password of an old client": by_password("/oauth/ro", grant_type="password", connection="people"),
    "the code of an old client": by_code("/oauth/ro", grant_type="password", connection="email", password="000000"),
    "the password grant": by_password("/oauth/token", grant_type=REALM, realm="people"),
    "the otp grant": by_code("/oauth/token", grant_type=OTP, realm="email", otp="000000"),
    "a code to check": lambda client, name: ask(client, "/passwordless/verify", connection="email", email=name, verification_code="000000"),
}


def number_of(name: str) -> str:
    return NUMBER_HERE if name == HERE else NUMBER_GONE


@dataclass
class Cost:
    """The work of all threads of the process: the SQL statements without their values, and the number of checked hashes."""

    statements: list[str] = field(default_factory=list)
    hashes: int = 0


@contextmanager
def counted() -> Iterator[Cost]:
    cost, execute, verify = Cost(), CursorWrapper.execute, hashing._verified

    def noted(self: CursorWrapper, sql: Any, params: Any = None) -> Any:
        if not _REMEMBERED.search(str(sql)):
            cost.statements.append(_INLINE.sub("?", str(sql)))
        return execute(self, sql, params)

    def hashed(password: str, encoded: str) -> tuple[bool, bool]:
        cost.hashes += 1
        return verify(password, encoded)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(CursorWrapper, "execute", noted)
        patched.setattr(hashing, "_verified", hashed)
        yield cost


def cost_of(work: Callable[[], Any]) -> tuple[Cost, Any]:
    forget_all()
    with counted() as cost:
        result = work()
    return cost, result


@pytest.mark.parametrize("asked", REQUESTS)
def test_a_request_costs_the_same_whether_or_not_the_account_exists(client: Client, asked: str) -> None:
    # Before the measurement, this request fills the caches of the process, such as the cache of the hash parameters in use.
    REQUESTS[asked](client, "first@example.test")
    known, told_known = cost_of(lambda: REQUESTS[asked](client, HERE))
    unknown, told_unknown = cost_of(lambda: REQUESTS[asked](client, GONE))
    assert known.statements
    assert known == unknown
    assert told_known.status in (200, 401, 403), told_known.body
    assert (told_known.status, shape(told_known, HERE)) == (told_unknown.status, shape(told_unknown, GONE))


def shape(answer: Received, name: str) -> str:
    """Return the answer without the email address or phone number of the request, and without random values."""
    text = answer.body.decode().replace(name, "?").replace(number_of(name), "?")
    return re.sub(r'"(_id|auth_session)":"[^"]+"', "drawn", text)


@pytest.mark.parametrize("hashes", [1])
@pytest.mark.parametrize("asked", ["a password in the application's form", "the password of an old client", "the password grant"])
def test_a_password_is_hashed_once_whether_or_not_the_account_exists(client: Client, asked: str, hashes: int) -> None:
    for name in (HERE, GONE):
        assert cost_of(partial(REQUESTS[asked], client, name))[0].hashes == hashes


def ask_on_page(tenant: Tenant, client: Client, name: str) -> Any:
    """Request a code on the hosted page, in a new browser."""
    browser = Browser(tenant)
    wanted = {"client_id": client.client_id, "response_type": "code", "redirect_uri": CALLBACK, "scope": "openid", "connection": "email"}
    page = browser.get("/authorize", {**wanted, **PROVEN_LATER})
    while page.status in (302, 303):
        page = browser.follow(page)
    return browser.submit(page, send="code", email=name)


def test_the_hosted_page_behaves_the_same_whether_or_not_the_account_exists(tenant: Tenant, client: Client) -> None:
    ask_on_page(tenant, client, "first@example.test")
    known, page_known = cost_of(lambda: ask_on_page(tenant, client, HERE))
    unknown, page_unknown = cost_of(lambda: ask_on_page(tenant, client, GONE))
    assert page_known.status == page_unknown.status == 303
    assert page_known.location.partition("?")[0] == page_unknown.location.partition("?")[0]
    assert known == unknown
