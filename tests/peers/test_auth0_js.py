"""Unmodified auth0-js in a browser: an application with its own login form, and an application that opens the login in a popup window."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from authapi.models import Client
from authapi.services.clients import create_client
from config.launcher.peers import PLACE
from config.launcher.tls import ServerCertificate
from identity.models import Connection, Tenant, User
from identity.services.connections import update_connection
from tests.deadlines import eventually
from tests.factories.identity import make_user
from tests.peers.chromium import PROGRAM, Chromium, Page, chromium
from tests.peers.sign_in_world import EMAIL, PASSWORD, serving

LIBRARY = PLACE / "node_modules" / "auth0-js" / "dist" / "auth0.min.js"
pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None or not LIBRARY.exists(), reason="chromium or auth0-js is not installed: make test-peers"),
]

# A page of the application creates a client of the library as the documentation of the library shows, and stores the results.
PAGE = """<!doctype html><title>Application</title><script src="/auth0.js"></script><script>
window.told = null;
const auth = new auth0.WebAuth(%(options)s);
const tell = (error, data) => { window.told = {error: error ?? null, data: data ?? null}; };
%(script)s
</script>"""
SCRIPTS = {
    "/": "",
    "/callback": "auth.parseHash(tell);",
    "/popup": "auth.popup.callback();",
    "/verify": "auth.crossOriginVerification();",
}


@dataclass
class Application:
    """An application with its own web server, and a service with TLS."""

    service: str
    origin: str
    client: Client
    connection: Connection
    user: User
    browser: Chromium

    def page(self) -> Page:
        page = self.browser.ordinary_page()
        page.open(f"{self.origin}/")
        return page

    def told(self, page: Page) -> Any:
        """Wait until the library has returned a result to the page, and return the result."""
        page.until("!!window.told", seconds=20)
        return page.evaluate("window.told")


@pytest.fixture
def application(tenant: Tenant, database_connection: Connection, tmp_path: Path) -> Iterator[Application]:
    options: dict[str, Any] = {"responseType": "token id_token", "scope": "openid profile email"}
    # Application and service are on one site, as with a custom domain, because this browser stores no cookies of other sites.
    with (
        serving(tenant, tmp_path) as (web, certificate),
        _Pages(options, certificate) as origin,
        chromium("--ignore-certificate-errors") as browser,
    ):
        service = f"https://localhost:{web.address[1]}"
        client, _ = create_client(
            tenant_id=tenant.pk,
            name="Old application",
            token_endpoint_auth_method="none",
            grant_types=["authorization_code", "implicit"],
            redirect_uris=f"{origin}/callback {origin}/popup {service}/u/logged-out",
            settings={"cross_origin_authentication": True, "web_origins": [origin], "cross_origin_loc": f"{origin}/verify"},
        )
        update_connection(tenant_id=tenant.pk, connection_id=database_connection.pk, changes={"enabled_clients": [client.client_id]})
        user = make_user(connection=database_connection, email=EMAIL, password=PASSWORD, email_verified=True)
        options |= {"domain": f"localhost:{web.address[1]}", "clientID": client.client_id, "redirectUri": f"{origin}/callback"}
        yield Application(service, origin, client, database_connection, user, browser)


class _Pages:
    """A web server for the pages of the application. `options` can be set after the start, when the URL of the service is known."""

    def __init__(self, options: dict[str, Any], certificate: ServerCertificate) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path == "/auth0.js":
                    body, kind = LIBRARY.read_bytes(), "text/javascript"
                else:
                    text = PAGE % {"options": json.dumps(options), "script": SCRIPTS.get(path, "")}
                    body, kind = text.encode(), "text/html; charset=utf-8"
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.chain, certificate.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> str:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"https://localhost:{self._server.server_address[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def login(page: Page, application: Application, *, password: str = PASSWORD) -> None:
    wanted = {"realm": application.connection.name, "username": EMAIL, "password": password}
    page.evaluate(f"auth.login({json.dumps(wanted)}, tell)")


def test_a_form_of_the_application_logs_a_user_in(application: Application) -> None:
    page = application.page()
    login(page, application, password="wrong")
    refused = application.told(page)["error"]
    assert (refused["code"], refused["description"]) == ("access_denied", "Wrong email or password.")

    page.evaluate("window.told = null")
    login(page, application)
    page.until("location.pathname === '/callback'", seconds=20)
    told = application.told(page)
    assert told["error"] is None, told
    assert (told["data"]["idTokenPayload"]["email"], told["data"]["idTokenPayload"]["sub"]) == (EMAIL, application.user.user_id)
    assert told["data"]["accessToken"]

    # The login with the ticket has created a session, so the library can log in again without a page.
    page.evaluate("window.told = null; auth.checkSession({}, tell)")
    silent = application.told(page)
    assert silent["error"] is None, silent
    assert silent["data"]["idTokenPayload"]["sub"] == application.user.user_id


def test_a_form_of_the_application_logs_a_user_in_without_leaving_the_page(application: Application) -> None:
    page = application.page()
    wanted = {"connection": application.connection.name, "username": EMAIL, "password": PASSWORD}
    page.evaluate(f"auth.popup.loginWithCredentials({json.dumps(wanted)}, tell)")
    told = application.told(page)
    assert told["error"] is None, told
    assert told["data"]["idTokenPayload"]["email"] == EMAIL
    assert page.evaluate("location.pathname") == "/"


def test_a_popup_window_returns_the_login_to_the_application(application: Application) -> None:
    page = application.page()
    page.evaluate(f"auth.popup.authorize({json.dumps({'redirectUri': f'{application.origin}/popup'})}, tell); undefined")
    window = _window(application, page)
    window.until("document.querySelector('input[type=password]') !== null", seconds=20)
    window.fill("input[autocomplete=username]", EMAIL)
    window.fill("input[type=password]", PASSWORD)
    window.click("form button[type=submit]")
    told = application.told(page)
    assert told["error"] is None, told
    assert told["data"]["idTokenPayload"]["email"] == EMAIL


def test_a_page_of_the_application_verifies_a_login_without_cookies_of_the_service(
    application: Application,
) -> None:
    page = application.page()
    # Send the request without cookies, as a browser does that blocks the cookies of the service for scripts of other sites.
    page.send("Network.enable")
    ticket = page.evaluate(
        f"fetch({json.dumps(application.service + '/co/authenticate')}, {{method: 'POST', credentials: 'omit',"
        " headers: {'Content-Type': 'application/json'},"
        f" body: JSON.stringify({json.dumps(_body(application))})}}).then((answer) => answer.json())"
    )
    key = f"co/verifier/{_encoded(application.service)}/{_encoded(ticket['co_id'])}"
    page.evaluate(
        f"new auth0.WebAuth(auth.baseOptions).crossOriginAuthentication.storage.setItem({json.dumps(key)},"
        f" {json.dumps(ticket['co_verifier'])}, {{expires: 1}})"
    )
    page.evaluate(f"auth.authorize({{loginTicket: {json.dumps(ticket['login_ticket'])}}}); undefined")
    page.until("location.pathname === '/callback'", seconds=25)
    told = application.told(page)
    assert told["error"] is None, told
    assert told["data"]["idTokenPayload"]["email"] == EMAIL


def test_a_page_on_the_host_of_the_service_logs_a_user_in(application: Application) -> None:
    page = application.page()
    page.send("Page.setBypassCSP", enabled=True)
    page.open(f"{application.service}/u/logged-out")
    page.evaluate(LIBRARY.read_text() + "; undefined")
    options = {
        "domain": application.service.removeprefix("https://"),
        "clientID": application.client.client_id,
        "redirectUri": f"{application.origin}/callback",
        "responseType": "token id_token",
        "scope": "openid email",
    }
    wanted = {"realm": application.connection.name, "username": EMAIL, "password": PASSWORD, "nonce": "n", "state": "s"}
    page.evaluate(f"new auth0.WebAuth({json.dumps(options)}).login({json.dumps(wanted)}, (error) => {{ window.told = error; }}); undefined")
    page.until("location.pathname === '/callback'", seconds=20)
    assert "id_token=" in str(page.evaluate("location.hash"))
    page.open(f"{application.service}/u/logged-out")
    page.evaluate(LIBRARY.read_text() + "; undefined")
    page.evaluate(
        f"window.told = null; new auth0.WebAuth({json.dumps(options)})._universalLogin.getSSOData("
        "(error, data) => { window.told = {error, data}; }); undefined"
    )
    data = application.told(page)["data"]
    assert (data["sso"], data["lastUsedUserID"]) == (True, application.user.user_id)


def test_calls_of_old_methods_of_the_library_get_a_response(application: Application) -> None:
    page = application.page()
    for call in ("getUserCountry(tell)", "getChallenge(tell)"):
        page.evaluate(f"window.told = null; auth.client.{call}; undefined")
        assert application.told(page)["error"] is None
    page.evaluate(
        "window.told = null; auth.client.loginWithResourceOwner({connection: 'x', username: 'a', password: 'b'}, tell); undefined"
    )
    refused = application.told(page)["error"]
    assert refused["code"] == "unauthorized_client"


def _window(application: Application, page: Page) -> Page:
    """Return the popup window that the page of the application has opened."""
    found: list[str] = []

    def is_there() -> bool:
        targets = application.browser.send("Target.getTargets", {})["targetInfos"]
        found[:] = [one["targetId"] for one in targets if one["type"] == "page" and one.get("openerId")]
        return bool(found)

    eventually(is_there, seconds=10)
    return application.browser.attached(found[0])


def _body(application: Application) -> dict[str, str]:
    realm = "http://auth0.com/oauth/grant-type/password-realm"
    return {
        "client_id": application.client.client_id,
        "credential_type": realm,
        "realm": application.connection.name,
        "username": EMAIL,
        "password": PASSWORD,
    }


def _encoded(text: str) -> str:
    return text.replace(":", "%3A").replace("/", "%2F")
