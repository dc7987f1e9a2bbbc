"""The hosted pages in a real browser: with the keyboard, without scripts, in dark mode, and as wide as a phone."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from authapi.models import Client, Consent, Session
from authapi.services.clients import create_client
from config.launcher.peers import PLACE
from identity.models import Connection, Tenant, User
from identity.services.connections import update_connection
from tests.conformance.web_process import web_process
from tests.deadlines import eventually
from tests.factories.identity import make_user
from tests.factories.models.authapi import ApiResourceFactory
from tests.peers.chromium import PROGRAM, Chromium, Page, chromium

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers"),
]

EMAIL, PASSWORD = "ada@example.test", "correct horse battery staple 7"
AUDIENCE = "https://things.example.test/"
AXE = PLACE / "node_modules" / "axe-core" / "axe.min.js"
SCREENS = [("light", 1280), ("dark", 1280), ("light", 360), ("dark", 360)]
# Two pages of an application: the page to which a login redirects, and a page that logs in silently in a frame.
LANDING = "<!doctype html><title>Application</title><p>You are back.</p>"
SILENT = """<!doctype html><title>Waiting</title><script>
addEventListener('message', (event) => { window.told = {origin: event.origin, ...event.data}; document.title = 'Told'; });
</script><iframe id="frame"></iframe>"""


@dataclass
class Application:
    """A tenant, its service, and an application with its own web server."""

    service: str
    origin: str
    client: Client
    browser: Chromium
    users: list[User] = field(default_factory=list)

    def address(self, **parameters: str) -> str:
        asked = {
            "response_type": "code",
            "client_id": self.client.client_id,
            "redirect_uri": f"{self.origin}/callback",
            "scope": "openid profile email",
            "state": "as sent",
        }
        return f"{self.service}/authorize?{urlencode(asked | parameters)}"

    def page(self, **parameters: str) -> Page:
        """Open `/authorize` in a new tab with its own profile, and return the tab."""
        page = self.browser.page()
        page.show_as()
        page.open(self.address(**parameters))
        return page

    def landed(self, page: Page) -> dict[str, str]:
        """Wait until the browser has been redirected to the application, and return the parameters of the response."""
        page.until(f"location.origin === {json.dumps(self.origin)}")
        query = parse_qs(urlsplit(str(page.evaluate("location.href"))).query)
        return {name: values[0] for name, values in query.items()}

    def log_in(self, page: Page) -> dict[str, str]:
        page.fill("input[autocomplete=username]", EMAIL)
        page.fill("input[type=password]", PASSWORD)
        page.click("form button[type=submit]")
        return self.landed(page)


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = (SILENT if self.path.startswith("/silent") else LANDING).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Write no log."""


@pytest.fixture
def origin() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture
def make(tenant: Tenant, database_connection: Connection, origin: str, browser: Chromium) -> Iterator[Callable[..., Application]]:
    """Return a function that creates the application. By default, it is a first-party application, which needs no consent."""
    ApiResourceFactory.create(
        tenant_id=tenant.pk, identifier=AUDIENCE, name="Things", scopes=[{"value": "read:things", "description": "See your things"}]
    )
    user = make_user(connection=database_connection, email=EMAIL, password=PASSWORD, given_name="Ada", email_verified=True)
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web:

        def made(**columns: Any) -> Application:
            client, _ = create_client(
                tenant_id=tenant.pk,
                name="Garden planner",
                grant_types=("authorization_code", "implicit"),
                redirect_uris=f"{origin}/callback",
                settings={"web_origins": [origin]},
                **columns,
            )
            changes = {"enabled_clients": [client.client_id]}
            update_connection(tenant_id=tenant.pk, connection_id=database_connection.pk, changes=changes)
            return Application(f"http://127.0.0.1:{web.address[1]}", origin, client, browser, [user])

        yield made


def test_a_user_can_log_in_with_the_keyboard_alone(make: Callable[..., Application]) -> None:
    application = make()
    page = application.page()
    page.until("document.activeElement.autocomplete === 'username'")
    page.send("Input.insertText", text=EMAIL)
    while page.evaluate("document.activeElement.type") != "password":
        page.press("Tab")
    page.send("Input.insertText", text=PASSWORD)
    page.press("Enter")

    answer = application.landed(page)
    assert answer["state"] == "as sent"
    assert answer["code"]
    assert answer["iss"].startswith(application.service)
    assert page.complaints == []


def test_a_wrong_password_is_reported_on_the_form_with_and_without_script(make: Callable[..., Application]) -> None:
    application = make()
    page = application.browser.page()
    page.open(application.address(login_hint=EMAIL))
    page.without_script()
    assert page.evaluate("document.querySelector('input[autocomplete=username]').value") == EMAIL
    page.fill("input[type=password]", "not it")
    page.click("form button[type=submit]")
    page.until("document.querySelector('#errors') !== null")

    assert "Wrong" in page.text("#errors")
    assert page.evaluate("document.querySelector('input[type=password]').value") == ""
    assert "code" in application.log_in(page)


def test_a_password_can_be_shown_with_the_keyboard_and_is_hidden_again_on_submission(make: Callable[..., Application]) -> None:
    page = make().page()
    page.fill("input[autocomplete=username]", EMAIL)
    page.fill("input[type=password]", "not it")
    while page.evaluate("document.activeElement.className") != "reveal":
        page.press("Tab")
    page.press(" ")
    assert page.evaluate("[document.querySelector('#password').type, document.activeElement.ariaPressed]") == ["text", "true"]
    page.evaluate(
        "addEventListener('submit', (event) => { window.sent = document.querySelector('#password').type; event.preventDefault(); })"
    )
    page.click("form button[type=submit]")
    assert page.evaluate("[window.sent, document.querySelector('form').ariaBusy]") == ["password", "true"]
    page.without_script()
    page.open(str(page.evaluate("location.href")))
    assert page.evaluate("document.querySelector('.reveal').checkVisibility()") is False
    assert page.complaints == []


def test_the_account_of_the_last_login_is_offered_and_can_be_removed(make: Callable[..., Application]) -> None:
    application = make()
    page = application.page()
    application.log_in(page)
    page.open(application.address(prompt="login"))
    assert EMAIL in page.text(".account")
    page.until("document.activeElement.type === 'password'")
    page.click("button[form=forget]")
    page.until("document.querySelector('.account') === null && document.querySelector('#username')?.checkVisibility()")
    assert EMAIL not in page.text()
    assert "code" in application.log_in(page)


def test_a_new_user_signs_up_and_is_logged_in(make: Callable[..., Application], tenant: Tenant) -> None:
    application = make()
    page = application.page(screen_hint="signup")
    page.fill("input[type=email], input[autocomplete=username]", "bob@example.test")
    page.fill("input[autocomplete=new-password]", PASSWORD)
    page.click("form button[type=submit]")

    assert "code" in application.landed(page)
    bob = User.objects.of(tenant.pk).get(email="bob@example.test")
    assert Session.objects.of(tenant.pk).get().user_id == bob.pk


def test_a_third_party_application_requires_consent(make: Callable[..., Application], tenant: Tenant) -> None:
    application = make(is_first_party=False)
    asked = {"scope": "openid email read:things", "audience": AUDIENCE}
    page = application.page(**asked)
    page.fill("input[autocomplete=username]", EMAIL)
    page.fill("input[type=password]", PASSWORD)
    page.click("form button[type=submit]")
    page.until("document.querySelectorAll('form button[type=submit]').length === 2")

    assert "Garden planner" in page.text()
    assert "See your things" in page.text()
    page.click("form button[value=deny], form button.quiet")
    assert application.landed(page)["error"] == "access_denied"
    assert not Consent.objects.of(tenant.pk).exists()

    page.open(application.address(**asked))
    page.until("document.querySelectorAll('form button[type=submit]').length === 2")
    page.click("form button[type=submit]:not(.quiet)")
    assert "code" in application.landed(page)
    page.open(application.address(**asked))
    assert "code" in application.landed(page)


def test_an_application_logs_in_silently_in_a_frame(make: Callable[..., Application]) -> None:
    application = make()
    page = application.page()
    application.log_in(page)

    page.open(f"{application.origin}/silent")
    silent = application.address(prompt="none", response_mode="web_message", response_type="code")
    page.evaluate(f"document.getElementById('frame').src = {json.dumps(silent)}")
    page.until("document.title === 'Told'")

    told = page.evaluate("window.told")
    assert told["type"] == "authorization_response"
    assert told["response"]["state"] == "as sent"
    assert told["response"]["code"]
    assert told["origin"] == application.service


def test_a_page_of_another_site_cannot_frame_the_form(make: Callable[..., Application]) -> None:
    application = make()
    page = application.browser.page()
    page.open(f"{application.origin}/silent")
    page.evaluate(f"document.getElementById('frame').src = {json.dumps(application.address())}")
    eventually(lambda: page.evaluate("1") == 1 and any("frame-ancestors" in complaint for complaint in page.complaints))


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make test-peers")
def test_every_page_is_accessible_in_every_color_scheme_and_width(make: Callable[..., Application]) -> None:
    application = make(is_first_party=False)
    page = application.page()
    pages = {
        "log in": application.address(prompt="login"),
        "sign up": application.address(screen_hint="signup", prompt="login"),
        "an error": application.address(redirect_uri="https://elsewhere.example.test/"),
        "logged out": f"{application.service}/v2/logout",
    }
    for name, address in pages.items():
        page.open(address)
        _is_clean(page, name)
        if name == "log in":
            for asked in page.evaluate("[...document.querySelectorAll('main a, body a')].map((link) => link.href)"):
                page.open(asked)
                _is_clean(page, asked)
    page.open(application.address(audience=AUDIENCE, scope="openid read:things"))
    page.fill("input[autocomplete=username]", EMAIL)
    page.fill("input[type=password]", PASSWORD)
    page.click("form button[type=submit]")
    page.until("document.querySelectorAll('form button[type=submit]').length === 2")
    _is_clean(page, "consent")


def _is_clean(page: Page, name: str) -> None:
    for scheme, width in SCREENS:
        page.show_as(scheme=scheme, width=width)
        wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, f"{name} is {wider} pixels too wide at {width}"
        page.send("Page.setBypassCSP", enabled=True)
        page.evaluate(AXE.read_text() + "; true")
        found = page.evaluate("axe.run().then((result) => result.violations.map(({id, nodes}) => [id, nodes[0].html]))")
        assert found == [], f"{name}, {scheme}, {width}"
    page.show_as()
