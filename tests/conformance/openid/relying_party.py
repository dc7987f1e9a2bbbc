"""An OpenID Connect client that checks every response as strictly as Core 1.0 requires, with a browser and its user."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from joserfc import jwt

from authapi.models import Client
from authapi.services.clients import create_client
from tests.authapi.browser import Browser, Page
from tests.authapi.token_forms import basic
from tests.conformance.openid.plans import Variant
from tests.conformance.openid.provider import EMAIL, Provider
from tests.factories.logins import challenge_of
from tests.factories.sign_in import PASSWORD

CALLBACK = "https://rp.example.test/callback"
LOGGED_OUT = "https://rp.example.test/logged-out"
GRANTS = ("authorization_code", "implicit", "refresh_token")


@dataclass(frozen=True)
class Outcome:
    """The result of one authorization: the responses of the authorization and the token endpoint, and the verified id token."""

    answer: Mapping[str, str]
    tokens: Mapping[str, Any]
    claims: Mapping[str, Any]

    @property
    def access_token(self) -> str:
        return str(self.tokens.get("access_token") or self.answer.get("access_token") or "")

    @property
    def id_token(self) -> str:
        return str(self.tokens.get("id_token") or self.answer["id_token"])


@dataclass
class RelyingParty:
    """One client in one browser."""

    provider: Provider
    client: Client
    secret: str = field(repr=False)
    variant: Variant
    browser: Browser
    method: str = "client_secret_basic"
    sent: dict[str, Any] = field(default_factory=dict)

    # --- The authorization endpoint ------------------------------------------------------------------------------------------

    def request(self, **changes: Any) -> dict[str, Any]:
        """Return the parameters of a valid request. `changes` overrides them; None removes a parameter."""
        good = {
            "client_id": self.client.client_id,
            "redirect_uri": CALLBACK,
            "scope": "openid",
            "response_type": self.variant.response_type,
            "state": secrets.token_urlsafe(8),
            "nonce": secrets.token_urlsafe(8),
            "response_mode": "form_post" if self.variant.is_form_post else None,
        }
        return {name: value for name, value in (good | changes).items() if value is not None}

    def authorize(self, **changes: Any) -> Page:
        """Send the browser to the authorization endpoint."""
        self.sent = self.request(**changes)
        return self.browser.get(self._path("authorization_endpoint"), self.sent)

    def log_in(self, page: Page) -> Page:
        """Follow the redirect to the login page, log in as the user, and consent where a page asks."""
        form = self.shown(page)
        assert 'autocomplete="current-password"' in form.text, form.text
        page = self.browser.submit(form, username=EMAIL, password=PASSWORD)
        if "location" in page.headers and page.location.startswith("/u/consent"):
            return self.browser.submit(self.shown(page), answer="allow")
        return page

    def shown(self, page: Page) -> Page:
        """Return the page of the provider that the user sees."""
        while page.status in (302, 303):
            page = self.browser.follow(page)
        assert page.status == 200, page.text
        return page

    def answer(self, page: Page) -> dict[str, str]:
        """Return the parameters that the page returns to the client, after a check of the response mode, the state and the issuer."""
        mode = self.sent.get("response_mode") or ("query" if self.sent.get("response_type", "code") == "code" else "fragment")
        if mode == "form_post":
            assert (page.status, page.form_action()) == (200, self.sent["redirect_uri"]), page.text
            found = page.fields()
        else:
            assert page.status in (302, 303), page.text
            parts = urlsplit(page.location)
            assert page.location.startswith(self.sent["redirect_uri"]), page.location
            assert bool(parts.fragment) is (mode == "fragment")
            found = page.answer
        assert found.get("state") == self.sent.get("state")
        assert found["iss"] == self.provider.issuer
        return found

    def error(self, page: Page) -> str:
        return self.answer(page)["error"]

    # --- The token endpoint ---------------------------------------------------------------------------------------------------

    def token(self, fields: Mapping[str, Any]) -> Page:
        """Call the token endpoint with client authentication."""
        headers, proof = {}, {}
        if self.method == "client_secret_basic":
            headers = basic(self.client.client_id, self.secret)
        else:
            proof = {"client_id": self.client.client_id, "client_secret": self.secret}
        return self.provider.post(self.provider.metadata["token_endpoint"], {**fields, **proof}, **headers)

    def exchange(self, code: str, **changes: Any) -> Page:
        good = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.sent["redirect_uri"]}
        return self.token({**good, **changes})

    def refresh(self, token: str) -> Page:
        return self.token({"grant_type": "refresh_token", "refresh_token": token})

    # --- The whole flow -------------------------------------------------------------------------------------------------------

    def complete(self, page: Page, **exchange: Any) -> Outcome:
        """Read the response from a page, check all its members, and exchange its code."""
        answer = self.answer(page)
        assert "error" not in answer, answer
        types, wanted = self.variant.types, {"code": "code", "token": "access_token", "id_token": "id_token"}
        assert {member for member in wanted.values() if member in answer} == {wanted[name] for name in types}
        claims: Mapping[str, Any] = {}
        if "id_token" in types:
            beside = {"at_hash": answer.get("access_token"), "c_hash": answer.get("code")}
            claims = self.verified(answer["id_token"], beside={name: value for name, value in beside.items() if value})
        if "token" in types:
            assert answer["token_type"].lower() == "bearer"
            assert int(answer["expires_in"]) > 0
        tokens: dict[str, Any] = {}
        if "code" in types:
            tokens = good_tokens(self.exchange(answer["code"], **exchange))
            fresh = self.verified(tokens["id_token"])
            assert not claims or (claims["iss"], claims["sub"]) == (fresh["iss"], fresh["sub"])
            claims = claims or fresh
        return Outcome(answer, tokens, claims)

    def logged_in(self, **changes: Any) -> Outcome:
        """Log in through the pages in a browser without a session."""
        return self.complete(self.log_in(self.authorize(**changes)))

    def verified(self, token: str, *, beside: Mapping[str, str] | None = None, is_refreshed: bool = False) -> dict[str, Any]:
        """Return the claims of an id token after every check of Core 1.0, 3.1.3.7, 3.2.2.11 and 3.3.2.12."""
        header = json.loads(_bytes(token.partition(".")[0]))
        assert header["alg"] == "RS256"
        assert [key.kid for key in self.provider.keys.keys].count(header["kid"]) == 1
        claims: dict[str, Any] = dict(jwt.decode(token, self.provider.keys, algorithms=["RS256"]).claims)
        now = time.time()
        assert (claims["iss"], claims["aud"]) == (self.provider.issuer, self.client.client_id)
        assert claims.get("azp", self.client.client_id) == self.client.client_id
        assert 0 < len(claims["sub"]) <= 255
        assert claims["iat"] <= now + 5 < claims["exp"]
        assert all(type(claims[name]) is int for name in ("iat", "exp"))
        assert claims.get("nonce") in ((self.sent.get("nonce"), None) if is_refreshed else (self.sent.get("nonce"),))
        for name, value in (beside or {}).items():
            assert claims[name] == half_hash(value)
        return claims

    def profile(self, token: str, *, method: str = "GET", in_body: bool = False) -> dict[str, Any]:
        """Read the profile with an access token in the header or in a form."""
        address = self.provider.metadata["userinfo_endpoint"]
        if in_body:
            page = self.provider.post(address, {"access_token": token})
        else:
            page = self.provider.ask(method, address, headers={"Authorization": f"Bearer {token}"})
        assert (page.status, page.headers["content-type"].partition(";")[0]) == (200, "application/json"), page.text
        return dict(json.loads(page.body))

    def told(self, outcome: Outcome) -> dict[str, Any]:
        """Return the user's claims: the profile if there is an access token, otherwise the claims of the id token."""
        if not outcome.access_token:
            return dict(outcome.claims)
        profile = self.profile(outcome.access_token)
        assert profile["sub"] == outcome.claims["sub"]
        return profile

    def _path(self, endpoint: str) -> str:
        return urlsplit(str(self.provider.metadata[endpoint])).path


def new_party(provider: Provider, variant: Variant | None = None, *, method: str = "client_secret_basic", **columns: Any) -> RelyingParty:
    """Register a client, and open a browser for it."""
    fields: dict[str, Any] = {
        "name": "Relying party",
        "grant_types": GRANTS,
        "redirect_uris": CALLBACK,
        "post_logout_redirect_uris": LOGGED_OUT,
        "token_endpoint_auth_method": method,
        "settings": {"oauth_standard_errors": True},
    }
    client, secret = create_client(tenant_id=provider.tenant.pk, **(fields | columns))
    provider.enable(client.client_id)
    return RelyingParty(provider, client, secret, variant or Variant(), provider.browser(), method)


def good_tokens(page: Page) -> dict[str, Any]:
    """Return a valid token response after the checks of RFC 6749, 5.1 and Core 1.0, 3.1.3.3."""
    assert page.status == 200, page.text
    assert page.headers["content-type"].partition(";")[0] == "application/json"
    assert (page.headers["cache-control"], page.headers["pragma"]) == ("no-store", "no-cache")
    tokens = dict(json.loads(page.body))
    assert tokens["access_token"]
    assert tokens["token_type"].lower() in ("bearer", "dpop")
    assert type(tokens["expires_in"]) is int
    return tokens


def half_hash(value: str) -> str:
    """Return the left half of the SHA-256 digest. Does not use the code under test (Core 1.0, 3.3.2.11)."""
    return base64.urlsafe_b64encode(hashlib.sha256(value.encode()).digest()[:16]).decode().rstrip("=")


def with_pkce() -> tuple[str, dict[str, str]]:
    """Return a new verifier and the parameters of its challenge."""
    verifier = secrets.token_urlsafe(48)
    return verifier, {"code_challenge": challenge_of(verifier), "code_challenge_method": "S256"}


def _bytes(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
