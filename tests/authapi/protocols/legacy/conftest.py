"""A tenant with an old client, a user, a browser, and the scripts of a page. Old clients use the endpoints and grants for old libraries."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from authapi.accounts import decoy_hashes, suspicion
from authapi.edge import buckets
from authapi.models import Client
from authapi.protocols.legacy.opting_in import LEGACY_GRANTS
from authapi.tenant_settings import remembered_settings
from authapi.views.legacy_endpoints import LEGACY_ENDPOINTS
from identity.models import Connection, Tenant, User
from identity.services.tenants import create_tenant
from tests.authapi.asgi_client import Received, send
from tests.authapi.browser import Browser
from tests.authapi.memory import forget_all
from tests.factories.sign_in import PASSWORD, people, person, web_client

ORIGIN = "https://app.example.test"
CALLBACK = f"{ORIGIN}/callback"
EMAIL = "ada@example.test"
GRANTS = ("authorization_code", "implicit", "refresh_token", *LEGACY_GRANTS)


@pytest.fixture(autouse=True)
def _fresh_memory() -> Iterator[None]:
    for memory in (remembered_settings, suspicion.remembered_suspicion, decoy_hashes._samples):
        memory.clear()
    buckets.buckets.cache_clear()
    yield
    buckets.buckets.cache_clear()


@dataclass
class OldClient:
    """A user at an old client, and the requests of its scripts."""

    tenant: Tenant
    client: Client
    connection: Connection
    user: User
    browser: Browser = field(init=False)

    def __post_init__(self) -> None:
        self.browser = Browser(self.tenant)

    @property
    def host(self) -> str:
        return f"{self.tenant.pk}.example.test"

    @property
    def issuer(self) -> str:
        return f"http://{self.host}/"

    def ask(
        self,
        path: str,
        form: Mapping[str, Any] | None = None,
        *,
        method: str = "POST",
        address: str = "192.0.2.1",
        query: str = "",
        **headers: str,
    ) -> Received:
        """Send JSON to an old endpoint, without members that are None.

        Cookies of the browser are sent only if a header contains them explicitly.
        """
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        chunks: tuple[bytes, ...] = (b"",)
        if method == "POST":
            body = {name: value for name, value in (form or {}).items() if value is not None}
            named = {"Content-Type": "application/json", **named}
            chunks = (json.dumps(body).encode(),)
        return send(LEGACY_ENDPOINTS[path], method, host=self.host, headers=named, chunks=chunks, address=address, query=query)

    def set(self, **changes: Any) -> None:
        """Change the client as an administrator does. The change takes effect immediately."""
        change(self.client, **changes)

    def log_in(self, **changes: Any) -> Received:
        """Request `/oauth/ro` with the right password."""
        form = {"grant_type": "password", "client_id": self.client.client_id, "connection": self.connection.name}
        return self.ask("/oauth/ro", {**form, "username": EMAIL, "password": PASSWORD, "scope": "openid", **changes})

    def authenticate(self, *, origin: str | None = ORIGIN, cookie: str = "", **changes: Any) -> Received:
        """Request `/co/authenticate` with the right password, from a page of the application."""
        form = {"client_id": self.client.client_id, "credential_type": REALM, "realm": self.connection.name}
        headers = {name: value for name, value in (("origin", origin), ("cookie", cookie)) if value}
        return self.ask("/co/authenticate", {**form, "username": EMAIL, "password": PASSWORD, **changes}, **headers)


REALM = "http://auth0.com/oauth/grant-type/password-realm"


def change(client: Client, **changes: Any) -> None:
    """Change columns and merge settings of a client. The change takes effect immediately."""
    settings = changes.pop("settings", {})
    Client.objects.of(client.tenant_id).filter(pk=client.pk).update(**changes, settings={**client.settings, **settings})
    client.refresh_from_db()
    forget_all()


def refusal(answer: Received) -> tuple[int, str, str]:
    """Return the status, the error and the text of a refusal."""
    body = answer.json()
    return answer.status, body["error"], body["error_description"]


def old_client(tenant: Tenant) -> OldClient:
    """Return an old client with every feature switched on, and a user who can log in to the client."""
    settings = {"cross_origin_authentication": True, "web_origins": [ORIGIN]}
    client, _ = web_client(tenant, grant_types=list(GRANTS), redirect_uris=CALLBACK, settings=settings)
    connection = people(tenant, client)
    forget_all()
    return OldClient(tenant, client, connection, person(connection))


@pytest.fixture
def second(committed_db: None) -> OldClient:
    """Return an old client and a user of another tenant."""
    name = f"t-{secrets.token_hex(6)}"
    return old_client(create_tenant(tenant_id=name, name=name, host=f"{name}.example.test"))


@pytest.fixture
def old(tenant: Tenant) -> OldClient:
    return old_client(tenant)
