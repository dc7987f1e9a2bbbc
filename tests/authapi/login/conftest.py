"""A tenant with one client, one database and one user, and a browser."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from authapi.models import Client
from identity.models import Connection, Tenant, User
from tests.authapi.browser import Browser, Page
from tests.factories.sign_in import CALLBACK, PASSWORD, people, person, web_client


@dataclass
class Login:
    """A login: tenant, client, connection, user and browser."""

    tenant: Tenant
    client: Client
    connection: Connection
    user: User
    browser: Browser
    sent: dict[str, str] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        return f"http://{self.browser.host}/"

    def ask(self, **changes: Any) -> Page:
        """Go to `/authorize`. A parameter that is None is left out."""
        good = {
            "client_id": self.client.client_id,
            "response_type": "code",
            "redirect_uri": CALLBACK,
            "scope": "openid",
            "state": "the-state",
        }
        self.sent = {name: value for name, value in {**good, **changes}.items() if value is not None}
        return self.browser.get("/authorize", self.sent)

    def log_in(self, page: Page, *, identifier: str = "ada@example.test", password: str = PASSWORD) -> Page:
        """Follow redirects to the login page and submit its form."""
        form = self.browser.follow(page) if page.status in (302, 303) else page
        assert form.status == 200, form.text
        return self.browser.submit(form, username=identifier, password=password)

    def begin_session(self) -> Page:
        """Log in once, so that the browser has a session."""
        answer = self.log_in(self.ask())
        assert "code" in answer.answer, answer.text
        return answer


@pytest.fixture
def login(tenant: Tenant) -> Login:
    client, _ = web_client(tenant)
    connection = people(tenant, client)
    return Login(tenant, client, connection, person(connection), Browser(tenant))


def set_client(login: Login, **columns: Any) -> None:
    """Change the client of the login as an administrator does. The change takes effect immediately."""
    from authapi import client_auth

    settings = columns.pop("settings", {})
    Client.objects.of(login.tenant.pk).filter(pk=login.client.pk).update(**columns, settings={**login.client.settings, **settings})
    login.client.refresh_from_db()
    client_auth.clients.clear()
