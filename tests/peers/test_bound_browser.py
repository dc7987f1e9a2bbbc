"""Unmodified auth0-spa-js in Chromium. The tokens of the application are bound to a key that no script can read (RFC 9449)."""

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
import requests

from authapi.services.clients import create_client
from authapi.services.tenant_settings import update_tenant_settings
from config.launcher.peers import PLACE
from config.launcher.tls import ServerCertificate
from identity.models import Connection, Tenant
from identity.services.connections import update_connection
from tests.factories.identity import make_user
from tests.factories.models.authapi import ApiResourceFactory
from tests.peers.chromium import PROGRAM, Page, chromium
from tests.peers.sign_in_world import AUDIENCE, EMAIL, PASSWORD, serving

LIBRARY = PLACE / "node_modules" / "@auth0" / "auth0-spa-js" / "dist" / "auth0-spa-js.production.js"
pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None or not LIBRARY.exists(), reason="chromium or auth0-spa-js is not installed: make test-peers"),
]

# The page of the application uses the library as the documentation of the library shows, and stores the results for the test.
PAGE = """<!doctype html><title>Application</title><script src="/library.js"></script><script>
const options = %(options)s;
window.told = null;
const keep = (told) => { window.told = told; };
const tell = (work) => work.then((value) => keep({value: value ?? null}), (error) => keep({error: String(error)}));
const ready = auth0.createAuth0Client(options);
const begin = async () => (await ready).loginWithRedirect();
const end = async () => { await (await ready).handleRedirectCallback(); return (await ready).getUser(); };
const tokens = async (more) => (await ready).getTokenSilently({detailedResponse: true, ...more});
const profile = async () => {
  const getAccessToken = async () => (await tokens()).access_token;
  const answer = await (await ready).createFetcher({dpopNonceId: 'profile', getAccessToken}).fetchWithAuth(options.profile);
  return [answer.status, (await answer.json()).email];
};
const claims = (token) => JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/')));
const kept = () => Object.values(localStorage).map((one) => JSON.parse(one)).find((one) => one.body?.refresh_token)?.body;
</script>"""


@dataclass
class Application:
    """An application with its own web server, and a service with TLS."""

    service: str
    authority: Path
    client_id: str
    page: Page

    def told(self, script: str) -> Any:
        """Run an asynchronous script on the page of the application, and return its result."""
        self.page.evaluate(f"window.told = null; tell({script}); null")
        self.page.until("!!window.told", seconds=20)
        told = self.page.evaluate("window.told")
        assert "error" not in told, told
        return told["value"]

    def stolen(self, method: str, path: str, **sent: Any) -> requests.Response:
        """Send a request as an attacker who has a token of the application, but not the key of the token."""
        return requests.request(method, f"{self.service}{path}", verify=str(self.authority), timeout=20, **sent)


@pytest.fixture
def application(tenant: Tenant, database_connection: Connection, tmp_path: Path) -> Iterator[Application]:
    options: dict[str, Any] = {"useDpop": True, "useRefreshTokens": True, "cacheLocation": "localstorage"}
    ApiResourceFactory.create(
        tenant_id=tenant.pk,
        identifier=AUDIENCE,
        scopes=[{"value": "read:things"}],
        settings={"allow_offline_access": True, "proof_of_possession": {"mechanism": "dpop", "required": True}},
    )
    with (
        serving(tenant, tmp_path) as (web, certificate),
        _Pages(options, certificate) as origin,
        chromium("--ignore-certificate-errors") as browser,
    ):
        service = f"https://localhost:{web.address[1]}"
        client, _ = create_client(
            tenant_id=tenant.pk,
            name="Application in a browser",
            app_type="spa",
            token_endpoint_auth_method="none",
            grant_types=["authorization_code", "refresh_token"],
            redirect_uris=f"{origin}/callback",
            settings={"web_origins": [origin], "require_proof_of_possession": True},
        )
        update_connection(tenant_id=tenant.pk, connection_id=database_connection.pk, changes={"enabled_clients": [client.client_id]})
        update_tenant_settings(tenant_id=tenant.pk, changes={"default_directory": database_connection.name})
        make_user(connection=database_connection, email=EMAIL, password=PASSWORD, email_verified=True)
        asked = {"redirect_uri": f"{origin}/callback", "audience": AUDIENCE, "scope": "openid email offline_access read:things"}
        domain = f"localhost:{web.address[1]}"
        options |= {"domain": domain, "clientId": client.client_id, "authorizationParams": asked, "profile": f"{service}/userinfo"}
        page = browser.ordinary_page()
        page.open(f"{origin}/")
        yield Application(service, certificate.authority, client.client_id, page)


class _Pages:
    """A web server for the page of the application. `options` can be set after the start, when the URL of the service is known."""

    def __init__(self, options: dict[str, Any], certificate: ServerCertificate) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_library = self.path == "/library.js"
                body = LIBRARY.read_bytes() if is_library else (PAGE % {"options": json.dumps(options)}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/javascript" if is_library else "text/html; charset=utf-8")
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


def logged_in(application: Application) -> None:
    """Log in on the hosted page, and wait until the browser is back at the application."""
    page = application.page
    page.evaluate("begin(); null")
    page.until("!!document.querySelector('input[type=password]')", seconds=20)
    page.fill("#username", EMAIL)
    page.fill("#password", PASSWORD)
    page.evaluate("document.querySelector('input[type=password]').form.requestSubmit(); null")
    page.until("location.pathname === '/callback' && typeof auth0 === 'object'", seconds=20)
    assert application.told("end()")["email"] == EMAIL


def test_tokens_of_an_application_in_a_browser_are_bound_to_its_key(application: Application) -> None:
    logged_in(application)
    first = application.told("tokens()")
    assert application.told("(async () => claims((await tokens()).access_token).cnf)()").keys() == {"jkt"}
    assert application.told("profile()") == [200, EMAIL]

    # An attacker's script on the page can read the tokens, but not the key.
    token = first["access_token"]
    for scheme in ("Bearer", "DPoP"):
        assert application.stolen("GET", "/userinfo", headers={"Authorization": f"{scheme} {token}"}).status_code == 401
    refresh_token = application.page.evaluate("kept().refresh_token")
    form = {"grant_type": "refresh_token", "client_id": application.client_id, "refresh_token": refresh_token}
    refused = application.stolen("POST", "/oauth/token", data=form)
    assert (refused.status_code, refused.json()["error"]) == (403, "invalid_grant")

    # The application continues, and its next token is bound to the same key.
    same = "(async () => { const [a, b] = [await tokens(), await tokens({cacheMode: 'off'})]; "
    same += "return [a.access_token !== b.access_token, claims(a.access_token).cnf.jkt === claims(b.access_token).cnf.jkt]; })()"
    assert application.told(same) == [True, True]
    assert application.told("profile()") == [200, EMAIL]
