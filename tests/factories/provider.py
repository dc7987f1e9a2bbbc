"""An OpenID provider whose every response a test can change. Other tests use real providers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from django.test import Client as Browser
from joserfc import jwt
from joserfc.jwk import RSAKey

from authapi.models import Client, Session
from authapi.upstream import federated_logout
from identity.models import Connection, Tenant
from identity.services.connections import create_connection
from tests.factories.scim import MisbehavingServer, Received, misbehaving_server, reply
from tests.factories.sign_in import CALLBACK, web_client

CLIENT_ID, SECRET = "at-the-provider", "secret-at-the-provider"
_SIGNING = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})


@dataclass
class Provider:
    """The provider, with its next responses. `changes` overrides the claims of a valid ID token. None removes a claim."""

    server: MisbehavingServer
    changes: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    discovery: dict[str, Any] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: _SIGNING)
    published: list[RSAKey] = field(default_factory=lambda: [_SIGNING])
    algorithm: str = "RS256"
    # Complete responses that replace valid responses, by path.
    answers: dict[str, bytes] = field(default_factory=dict)
    nonce: str = ""

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    @property
    def paths(self) -> list[str]:
        """The requested paths, in order."""
        return [urlsplit(request.path).path for request in self.server.received]

    def token_form(self) -> dict[str, str]:
        """Return the last request to the token endpoint."""
        sent = [request for request in self.server.received if request.path == "/token"]
        return dict(parse_qsl(sent[-1].body.decode()))

    def id_token(self) -> str:
        now = int(time.time())
        good = {"iss": self.issuer, "aud": CLIENT_ID, "sub": "248289", "iat": now, "exp": now + 300, "nonce": self.nonce}
        person = {"email": "ada@corp.example.test", "email_verified": True, "name": "Ada Lovelace"}
        claims = {name: value for name, value in {**good, **person, **self.claims, **self.changes}.items() if value is not None}
        return jwt.encode({"alg": self.algorithm, "kid": self.key.kid}, claims, self.key, algorithms=[self.algorithm])

    def answer(self, request: Received) -> bytes:
        path = urlsplit(request.path).path
        if path in self.answers:
            return self.answers[path]
        match path:
            case "/.well-known/openid-configuration":
                return reply(200, self._document())
            case "/jwks":
                return reply(200, {"keys": [key.as_dict(private=False) for key in self.published]})
            case "/token":
                return reply(200, {"access_token": "at", "token_type": "Bearer", "expires_in": 60, "id_token": self.id_token()})
            case "/userinfo":
                return reply(200, {"sub": "248289", **self.userinfo})
            case _:
                return reply(404, {})

    def _document(self) -> dict[str, Any]:
        names = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/jwks", "userinfo_endpoint": "/userinfo"}
        addresses = {name: self.issuer + path for name, path in names.items()}
        document = {"issuer": self.issuer, **addresses, "end_session_endpoint": f"{self.issuer}/logout", **self.discovery}
        return {name: value for name, value in document.items() if value is not None}


@contextmanager
def provider() -> Iterator[Provider]:
    """Serve a provider on a free port."""
    made: list[Provider] = []
    with misbehaving_server(lambda request: made[0].answer(request)) as server:
        made.append(Provider(server))
        yield made[0]


@dataclass
class Login:
    """A browser at a client whose users log in at the provider."""

    tenant: Tenant
    client: Client
    connection: Connection
    provider: Provider
    browser: Browser

    def leave(self, **parameters: str) -> dict[str, str]:
        """Start a login at the client and continue to the provider. Return the parameters of the request to the provider."""
        asked = {
            "response_type": "code",
            "client_id": self.client.client_id,
            "redirect_uri": CALLBACK,
            "state": "app-state",
            "scope": "openid",
        }
        page = self.browser.get("/authorize", {**asked, "connection": self.connection.name, **parameters})
        assert page.status_code == 302, page.content
        elsewhere = self.browser.get(page["Location"])
        assert elsewhere.status_code == 302, elsewhere.content
        sent = dict(parse_qsl(urlsplit(elsewhere["Location"]).query))
        self.provider.nonce = sent.get("nonce", "")
        return sent

    def come_back(self, sent: dict[str, str], *, method: str = "GET", **changes: str | None) -> Any:
        """Return to the service with the provider's response. `changes` replaces parameters of the response; None removes a parameter."""
        answer = {"code": "a-code", "state": sent["state"], **changes}
        fields = {name: value for name, value in answer.items() if value is not None}
        return getattr(self.browser, method.lower())("/login/callback", fields)

    def told(self, response: Any) -> dict[str, str]:
        """Return the parameters that the client gets in the redirect at the end of a login."""
        assert response.status_code in (302, 303), response.content
        assert response["Location"].startswith(CALLBACK), response["Location"]
        return {name: values[0] for name, values in parse_qs(urlsplit(response["Location"]).query).items()}

    def log_in(self, **parameters: str) -> dict[str, str]:
        """Run the whole login. Return the parameters that the client gets."""
        return self.told(self.come_back(self.leave(**parameters)))


def address_of_logout(session: Session, *, return_to: str) -> str | None:
    """Return the provider's URL to which a logout redirects the browser, so that the login at the provider also ends."""
    found = federated_logout(session, return_to=return_to)
    return found.then.address if found is not None and found.then is not None else None


def login_at(tenant: Tenant, provider: Provider, *, strategy: str = "oidc", **options: Any) -> Login:
    """Create a client whose only connection uses the provider."""
    client, _ = web_client(tenant)
    named = {"client_id": CLIENT_ID, "client_secret": SECRET, "issuer": provider.issuer, **options}
    connection = create_connection(
        tenant_id=tenant.pk,
        name="corp",
        strategy=strategy,
        enabled_clients=[client.client_id],
        options={name: value for name, value in named.items() if value is not None},
    )
    return Login(tenant, client, connection, provider, Browser(headers={"host": f"{tenant.pk}.example.test"}))
