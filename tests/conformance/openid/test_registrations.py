"""Applications register themselves (RFC 7591; OpenID Connect Dynamic Client Registration 1.0) and use their registration afterwards."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from authapi.client_auth.assertion import ASSERTION_TYPE
from authapi.models import Client
from authapi.services.tenant_settings import update_tenant_settings
from tests.authapi.assertions import private_key
from tests.authapi.browser import Page
from tests.authapi.memory import forget_all
from tests.conformance.openid.plans import Variant
from tests.conformance.openid.provider import Provider, error_of
from tests.conformance.openid.relying_party import CALLBACK, RelyingParty, good_tokens

LINK = "https://rp.example.test/about"


@pytest.fixture(scope="module", autouse=True)
def _open(provider: Provider) -> None:
    """Let applications register themselves without a token from an administrator."""
    settings = {"flags": {"enable_dynamic_client_registration": True}, "require_initial_access_token": False}
    update_tenant_settings(tenant_id=provider.tenant.pk, changes=settings)
    provider.changed()


def jwk_of(key: str, *, kid: str) -> dict[str, Any]:
    return {**RSAKey.import_key(private_key(key)).as_dict(private=False), "use": "sig", "alg": "RS256", "kid": kid}


def ask(provider: Provider, **metadata: Any) -> Page:
    """Send a registration with valid metadata. `metadata` overrides its members; None removes a member."""
    good = {"redirect_uris": [CALLBACK], "grant_types": ["authorization_code", "refresh_token"], "client_name": "Registered"}
    body = json.dumps({name: value for name, value in (good | metadata).items() if value is not None}).encode()
    return provider.ask("POST", provider.metadata["registration_endpoint"], headers={"Content-Type": "application/json"}, body=body)


@dataclass
class Registrant(RelyingParty):
    """A client that registered itself. If it has no secret, it authenticates with assertions signed with its own key."""

    key: str = "first"
    kid: str = "one"

    def token(self, fields: Any) -> Page:
        if self.secret:
            return super().token(fields)
        proof = {"client_assertion_type": ASSERTION_TYPE, "client_assertion": self.assertion()}
        return self.provider.post(self.provider.metadata["token_endpoint"], {**fields, **proof})

    def assertion(self, **changes: Any) -> str:
        now, me = int(time.time()), self.client.client_id
        claims = {"iss": me, "sub": me, "aud": self.provider.issuer, "jti": secrets.token_urlsafe(8), "iat": now, "exp": now + 60}
        signer = RSAKey.import_key(private_key(self.key))
        return jwt.encode({"alg": "RS256", "kid": self.kid}, claims | changes, signer)


def registered(provider: Provider, **metadata: Any) -> tuple[Registrant, dict[str, Any]]:
    """Register a client with a key. Return the client with the registration response."""
    if "token_endpoint_auth_method" not in metadata:
        metadata = {"token_endpoint_auth_method": "private_key_jwt", "jwks": {"keys": [jwk_of("first", kid="one")]}, **metadata}
    page = ask(provider, **metadata)
    assert (page.status, page.headers["cache-control"]) == (201, "no-store"), page.text
    told = json.loads(page.body)
    client = Client.objects.of(provider.tenant.pk).get(client_id=told["client_id"])
    provider.enable(client.client_id)
    return Registrant(provider, client, told.get("client_secret", ""), Variant(), provider.browser()), told


def consent_page(party: Registrant) -> Page:
    """Log in, and stop at the consent page."""
    form = party.shown(party.authorize(scope="openid email"))
    page = party.browser.submit(form, username="ada@example.test", password=_password())
    return party.shown(page)


def _password() -> str:
    from tests.factories.sign_in import PASSWORD

    return PASSWORD


def test_oidcc_registration_dynamic(provider: Provider) -> None:
    party, told = registered(provider, token_endpoint_auth_method="client_secret_basic")
    # RFC 7591, 3.2.1.
    assert {"client_id", "client_secret", "client_secret_expires_at"} <= told.keys()
    assert (told["redirect_uris"], told["token_endpoint_auth_method"]) == ([CALLBACK], "client_secret_basic")
    assert party.logged_in().claims["sub"]


def test_oidcc_registration_jwks_uri(provider: Provider, key_server: ThreadingHTTPServer) -> None:
    """The service uses keys at a URI only to verify signed requests.

    A client that authenticates with assertions must register the keys themselves. A registration with only a URI is refused.
    """
    address = f"http://127.0.0.1:{key_server.server_port}/keys"
    page = ask(provider, token_endpoint_auth_method="private_key_jwt", jwks_uri=address)
    assert error_of(page) == (400, "invalid_client_metadata")
    party, told = registered(provider, token_endpoint_auth_method="client_secret_basic", jwks_uri=address)
    assert told["jwks_uri"] == address
    party.sent = party.request()
    claims = {"iss": party.client.client_id, "aud": provider.issuer, "exp": int(time.time()) + 60, **party.sent}
    token = jwt.encode({"alg": "RS256", "kid": "published"}, claims, RSAKey.import_key(private_key("second")))
    page = party.browser.get("/authorize", {"client_id": party.client.client_id, "request": token})
    assert party.complete(party.log_in(page)).claims["sub"]


@pytest.fixture
def key_server() -> Iterator[ThreadingHTTPServer]:
    """A server at which a client publishes its key."""
    content = json.dumps({"keys": [jwk_of("second", kid="published")]}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def test_oidcc_registration_logo_uri(provider: Provider) -> None:
    party, told = registered(provider, logo_uri=f"{LINK}.png")
    assert told["logo_uri"] == f"{LINK}.png"
    assert "Registered" in consent_page(party).text


def test_oidcc_registration_policy_uri(provider: Provider) -> None:
    """The pages show no policy of a client, so the registration response does not contain the URI."""
    party, told = registered(provider, policy_uri=LINK)
    assert "policy_uri" not in told
    assert "Registered" in consent_page(party).text


def test_oidcc_registration_tos_uri(provider: Provider) -> None:
    party, told = registered(provider, tos_uri=LINK)
    assert "tos_uri" not in told
    assert "Registered" in consent_page(party).text


def test_oidcc_registration_sector_uri(provider: Provider) -> None:
    """All clients get the same `sub` for a user, so there are no sectors. A registration that requires sectors is refused."""
    assert provider.metadata["subject_types_supported"] == ["public"]
    page = ask(provider, sector_identifier_uri=f"{LINK}/sector.json", subject_type="pairwise")
    assert error_of(page) == (400, "invalid_client_metadata")


def test_oidcc_registration_sector_bad(provider: Provider) -> None:
    page = ask(provider, sector_identifier_uri=f"{LINK}/other.json")
    assert error_of(page) == (400, "invalid_client_metadata")


def test_oidcc_redirect_uri_regfrag(provider: Provider) -> None:
    page = ask(provider, redirect_uris=[f"{CALLBACK}#fragment"])
    assert error_of(page)[1] in ("invalid_redirect_uri", "invalid_client_metadata")


def test_oidcc_refresh_token_rp_key_rotation(provider: Provider) -> None:
    party, told = registered(provider)
    token = party.logged_in(scope="openid offline_access").tokens["refresh_token"]
    fresh = good_tokens(party.refresh(token))
    # The client replaces its key (RFC 7592, 2.2).
    metadata = {name: value for name, value in told.items() if name not in HANDED_OUT}
    metadata["jwks"] = {"keys": [jwk_of("second", kid="two")]}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {told['registration_access_token']}"}
    page = provider.ask("PUT", told["registration_client_uri"], headers=headers, body=json.dumps(metadata).encode())
    assert page.status == 200, page.text
    forget_all()
    rotated = fresh.get("refresh_token", token)
    assert party.refresh(rotated).status == 401
    party.key, party.kid = "second", "two"
    assert good_tokens(party.refresh(rotated))["access_token"]


HANDED_OUT = ("registration_access_token", "registration_client_uri", "client_id_issued_at", "client_secret_expires_at")


def test_oidcc_ensure_client_assertion_with_iss_aud_succeeds(provider: Provider) -> None:
    """The audience of an assertion is the issuer. The URL of the endpoint is not accepted (RFC 7523bis)."""
    party, _ = registered(provider)
    code = party.answer(party.log_in(party.authorize()))["code"]
    assert good_tokens(party.exchange(code))["access_token"]
    header = json.loads(base64.urlsafe_b64decode(party.assertion().partition(".")[0] + "=="))
    assert header["alg"] == "RS256"
