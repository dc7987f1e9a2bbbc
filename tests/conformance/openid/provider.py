"""The provider under test as its clients see it: an issuer, its documents and its endpoints. Requests run in-process, without a server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlencode, urlsplit

from joserfc.jwk import KeySet

from identity.models import Connection, Tenant, User
from identity.services.connections import update_connection
from tests.authapi.browser import FORM, Browser, Page
from tests.authapi.certificates import edge_key
from tests.authapi.memory import forget_all
from tests.factories.models.identity import TenantFactory
from tests.factories.sign_in import people, person

EMAIL = "ada@example.test"
_BROWSERS = itertools.count()
# Headers that only browsers send.
_NO_BROWSER = {"sec-fetch-mode": "", "sec-fetch-dest": ""}


@dataclass
class Provider:
    """One tenant with one user."""

    tenant: Tenant
    connection: Connection
    user: User
    # The secret of the TLS proxy that forwards client certificates to the tenant's host.
    edge: str = field(repr=False)

    @property
    def host(self) -> str:
        return f"{self.tenant.pk}.example.test"

    @property
    def issuer(self) -> str:
        return f"http://{self.host}/"

    @cached_property
    def metadata(self) -> dict[str, Any]:
        page = self.ask("GET", f"{self.issuer}.well-known/openid-configuration")
        assert page.status == 200, page.body
        return dict(json.loads(page.body))

    @cached_property
    def keys(self) -> KeySet:
        return KeySet.import_key_set(json.loads(self.ask("GET", self.metadata["jwks_uri"]).body))

    def changed(self) -> None:
        """Drop the cached metadata and keys, so that the next use requests these documents again, as clients do after some time."""
        forget_all()
        for name in ("metadata", "keys"):
            self.__dict__.pop(name, None)

    def browser(self) -> Browser:
        """Return a browser without a session. It has its own IP address, because logins of one user from one IP address are limited."""
        number = next(_BROWSERS)
        return Browser(self.tenant, address=f"198.51.{number // 250 % 250}.{number % 250 + 1}")

    def ask(self, method: str, address: str, *, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Page:
        """Send a request to a URL of the provider without the headers of a browser."""
        assert address.startswith(self.issuer), address
        parts = urlsplit(address)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        return Browser(self.tenant).send(method, target, body=body, headers={**_NO_BROWSER, **(headers or {})})

    def post(self, address: str, fields: Mapping[str, Any], **headers: str) -> Page:
        """Post a form without the headers of a browser. None leaves a field out."""
        sent = [(name, value) for name, value in fields.items() if value is not None]
        return self.ask("POST", address, headers={"Content-Type": FORM, **headers}, body=urlencode(sent, doseq=True).encode())

    def enable(self, *client_ids: str) -> None:
        """Let users of the connection log in to these clients too."""
        self.connection.refresh_from_db()
        enabled = [*self.connection.enabled_clients, *client_ids]
        changes = {"enabled_clients": enabled}
        self.connection = update_connection(tenant_id=self.tenant.pk, connection_id=self.connection.pk, changes=changes)


def new_provider() -> Provider:
    """Create a tenant, a user with a full profile, and the key of a TLS proxy that forwards client certificates."""
    tenant: Tenant = TenantFactory.create(prefix="op")
    connection = people(tenant, requires_username=True)
    user = person(
        connection,
        email=EMAIL,
        username="ada",
        given_name="Ada",
        family_name="Lovelace",
        nickname="Countess",
        picture="https://pictures.example.test/ada.png",
        phone_number="+4366012345678",
        phone_verified=True,
    )
    return Provider(tenant, connection, user, edge_key(tenant))


def error_of(page: Page) -> tuple[int, str]:
    """Return the status and the error of a refusal without a page."""
    assert page.headers["content-type"].startswith("application/json"), page.text
    return page.status, str(json.loads(page.body)["error"])
