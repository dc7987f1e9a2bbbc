"""An application that uses SAML, a user, and the browser of the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from authapi import client_auth
from authapi.models import Client
from authapi.services.clients import update_client
from authapi.tokens.saml_keys import published_certificates
from authapi.xml.bindings import REQUEST, Signer, posted_fields, redirect_address
from authapi.xml.names import SAML, SAMLP, qualified
from authapi.xml.parsing import Element, child, from_base64, parse
from authapi.xml.verifying import verified
from identity.models import Connection, Tenant, User
from identity.services.connections import change_enabled_clients
from tests.authapi.browser import Browser, Page
from tests.authapi.protocols.saml.requests_of_applications import addon, authn_request
from tests.factories.sign_in import PASSWORD, people, person, web_client

ACS = "https://sp.example.test/acs"
LOGOUT = "https://sp.example.test/slo"


@dataclass
class Application:
    """A service provider of one tenant."""

    tenant: Tenant
    client: Client
    user: User
    browser: Browser
    acs: str = ACS

    @property
    def path(self) -> str:
        return f"/samlp/{self.client.client_id}"

    def set(self, **members: Any) -> None:
        """Replace the settings of the add-on."""
        set_client(self.client, settings=addon(**members))

    def ask(self, message: Element | None = None, *, relay_state: str = "", signer: Signer | None = None, **beside: str) -> Page:
        """Send a request by the redirect binding. `beside` contains additional parameters that SAML does not define."""
        address = redirect_address(self.path, REQUEST, authn_request() if message is None else message, relay_state, signer)
        page = self.browser.get(address.partition("?")[0], dict(parse_qsl(urlsplit(address).query)) | beside)
        return page

    def post(self, message: Element, *, relay_state: str = "", signer: Signer | None = None) -> Page:
        """Send a request by the POST binding, from a page of the application."""
        return self.browser.post(self.path, posted_fields(REQUEST, message, relay_state, signer), Origin="https://sp.example.test")

    def log_in(self, page: Page, password: str = PASSWORD) -> Page:
        """Log the user in at the page to which an answer leads."""
        shown = self.browser.follow(page)
        return self.browser.submit(shown, username=self.user.email or "", password=password)

    def answered(self, page: Page) -> Answer:
        """Return the response that a page posts to the application."""
        assert page.status == 200, (page.status, page.headers.get("location"), page.text[:500])
        assert page.form_action() == self.acs, page.text[:500]
        fields = page.fields()
        root = parse(from_base64(fields["SAMLResponse"]))
        return Answer(root, fields.get("RelayState"), self.tenant)


@dataclass
class Answer:
    root: Element
    relay_state: str | None
    tenant: Tenant

    @property
    def codes(self) -> list[str]:
        status = child(self.root, qualified(SAMLP, "Status"))
        assert status is not None
        return [str(each.get("Value")).rpartition(":")[2] for each in status.iter(qualified(SAMLP, "StatusCode"))]

    @property
    def message(self) -> str:
        found = self.root.find(f"{qualified(SAMLP, 'Status')}/{qualified(SAMLP, 'StatusMessage')}")
        return "" if found is None else found.text or ""

    @property
    def assertion(self) -> Element:
        """Return the assertion, verified with the certificates that the tenant publishes."""
        found = child(self.root, qualified(SAML, "Assertion"))
        assert found is not None, self.codes
        return verified(found, published_certificates(self.tenant.pk), allow_sha1=True)

    def at(self, *names: str) -> Element:
        found = self.assertion.find("/".join(qualified(SAML, name) for name in names))
        assert found is not None, names
        return found

    @property
    def name(self) -> str:
        return self.at("Subject", "NameID").text or ""

    @property
    def session_index(self) -> str:
        return self.at("AuthnStatement").get("SessionIndex") or ""


def set_client(client: Client, **changes: Any) -> None:
    update_client(tenant_id=client.tenant_id, client_id=client.client_id, changes=changes)
    client_auth.clients.clear()
    client.refresh_from_db()


def saml_client(tenant: Tenant, *, callbacks: str = ACS, addons: Mapping[str, Any] | None = None, **changes: Any) -> Client:
    settings = {**addon(**(addons or {})), **changes.pop("settings", {})}
    client, _ = web_client(tenant, name="Payroll", redirect_uris=callbacks, settings=settings, **changes)
    return client


@pytest.fixture
def application(tenant: Tenant) -> Application:
    """Create an application, with a connection whose only user is Ada."""
    client = saml_client(tenant)
    connection = people(tenant, client)
    return Application(tenant, client, person(connection), Browser(tenant))


def enable(connection: Connection, *clients: Client) -> None:
    """Enable a connection for further applications."""
    added = [each.client_id for each in clients]
    change_enabled_clients(tenant_id=connection.tenant_id, connection_id=connection.pk, added=added, removed=[])
