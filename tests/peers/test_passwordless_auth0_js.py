"""Unmodified auth0-js in a browser. A page of an application requests codes and links, and logs in with them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from authapi.grants.passwordless import PasswordlessGrant
from authapi.services.clients import update_client
from identity.models import Tenant, User
from identity.services.connections import create_connection
from tests.authapi.memory import forget_all
from tests.peers.chromium import PROGRAM, Page
from tests.peers.outbox import Outbox
from tests.peers.test_auth0_js import LIBRARY, Application, application  # noqa: F401 (the application of the other tests)

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None or not LIBRARY.exists(), reason="chromium or auth0-js is not installed: make test-peers"),
]

ADA, NUMBER = "eve@example.test", "+4915112345678"


@dataclass
class Door:
    """A page of the application, and the messages that the service has sent."""

    application: Application
    outbox: Outbox
    page: Page

    def call(self, method: str, **wanted: Any) -> None:
        self.page.evaluate(f"window.told = null; auth.{method}({json.dumps(wanted)}, tell); undefined")

    def ask(self, **wanted: Any) -> Any:
        """Request a message with a code or link, and return the result of the library."""
        self.call("passwordlessStart", **wanted)
        told = self.application.told(self.page)
        self.page.evaluate("window.told = null")
        return told

    def logged_in(self) -> dict[str, Any]:
        """Wait until the browser is back at the application. Return the claims of the ID token."""
        self.page.until("location.pathname === '/callback'", seconds=25)
        told = self.application.told(self.page)
        assert told["error"] is None, told
        return dict(told["data"]["idTokenPayload"])

    def agree(self) -> None:
        """Confirm the login on the page that requests a confirmation before it logs this browser in."""
        self.page.until("location.pathname === '/u/passwordless/confirm' && document.readyState === 'complete'", seconds=20)
        self.page.click("form button[type=submit]")


@pytest.fixture
def outbox(tenant: Tenant, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outbox:
    outbox = Outbox(tmp_path / "outbox", settings, tenant_id=tenant.pk)
    # Set the environment variables before the web process of the service starts, because the process inherits the variables.
    for name, url in outbox.urls.items():
        monkeypatch.setenv(name, url)
    return outbox


@pytest.fixture
def door(outbox: Outbox, application: Application) -> Door:  # noqa: F811 (the fixture of this name)
    client = application.client
    update_client(
        tenant_id=client.tenant_id,
        client_id=client.client_id,
        changes={"grant_types": ["authorization_code", "implicit", PasswordlessGrant.name]},
    )
    for strategy in ("email", "sms"):
        create_connection(tenant_id=client.tenant_id, name=strategy, strategy=strategy, enabled_clients=[client.client_id], options={})
    forget_all()
    return Door(application, outbox, application.page())


def wrong(code: str) -> str:
    return f"{(int(code) + 1) % 1_000_000:06d}"


def test_a_page_can_request_a_code_and_log_a_user_in_with_the_code(door: Door) -> None:
    asked = door.ask(connection="email", send="code", email=ADA)
    assert asked["error"] is None, asked
    assert (asked["data"]["email"], asked["data"]["emailVerified"]) == (ADA, False)
    code = door.outbox.mailed_code(ADA)

    door.call("passwordlessLogin", connection="email", email=ADA, verificationCode=wrong(code))
    refused = door.application.told(door.page)["error"]
    assert (refused["code"], refused["description"]) == ("access_denied", "Wrong email or verification code."), refused

    door.call("passwordlessLogin", connection="email", email=ADA, verificationCode=code)
    claims = door.logged_in()
    user = User.objects.of(door.application.client.tenant_id).get(email=ADA)
    assert (claims["sub"], claims["email"], claims["email_verified"]) == (user.user_id, ADA, True)

    # The login has created a session, and the code cannot be used again.
    door.call("checkSession")
    assert door.application.told(door.page)["data"]["idTokenPayload"]["sub"] == user.user_id
    door.call("passwordlessLogin", connection="email", email=ADA, verificationCode=code)
    assert door.application.told(door.page)["error"]["description"] == "Wrong email or verification code."


def test_a_page_can_request_a_text_message_and_log_a_user_in_with_its_code(door: Door) -> None:
    asked = door.ask(connection="sms", send="code", phoneNumber=NUMBER)
    assert asked["error"] is None, asked
    assert (asked["data"]["phoneNumber"], asked["data"]["phoneVerified"]) == (NUMBER, False)
    door.call("passwordlessLogin", connection="sms", phoneNumber=NUMBER, verificationCode=door.outbox.texted_code(NUMBER))
    assert door.logged_in()["sub"].startswith("sms|")


def test_after_the_check_of_a_code_the_browser_must_confirm_the_login(door: Door) -> None:
    door.ask(connection="email", send="code", email=ADA)
    code = door.outbox.mailed_code(ADA)
    door.call("passwordlessVerify", connection="email", email=ADA, verificationCode=wrong(code))
    refused = door.application.told(door.page)["error"]
    assert (refused["code"], refused["description"]) == ("invalid_user_password", "Wrong email or verification code."), refused

    door.call("passwordlessVerify", connection="email", email=ADA, verificationCode=code)
    door.agree()
    assert door.logged_in()["email"] == ADA


def test_a_link_redirects_to_the_page_that_requested_it(door: Door) -> None:
    door.ask(connection="email", send="link", email=ADA)
    door.page.open(door.outbox.mailed_link(ADA))
    door.agree()
    # The library has stored the state of its request in this browser, and compares it with the state in the response.
    assert door.logged_in()["email"] == ADA


def test_an_invalid_request_gets_its_error_code(door: Door) -> None:
    odd = {
        "bad.request": {"connection": "email", "send": "code", "email": "no address"},
        "bad.phone_number": {"connection": "sms", "send": "code", "phoneNumber": "5550100"},
        "bad.connection": {"connection": "nowhere", "send": "code", "email": ADA},
    }
    told = {code: door.ask(**wanted)["error"] for code, wanted in odd.items()}
    assert {code: error["code"] for code, error in told.items()} == {code: code for code in odd}
    assert all(error["description"] for error in told.values())
    for _ in range(5):
        door.ask(connection="email", send="code", email=ADA)
    refused = door.ask(connection="email", send="code", email=ADA)["error"]
    assert (refused["code"], refused["statusCode"]) == ("too_many_requests", 429)
