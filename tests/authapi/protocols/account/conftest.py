"""A tenant with an enabled account page, a logged-in user, and helpers for the steps of the user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from authapi.models import Session
from authapi.services.tenant_settings import update_tenant_settings
from foundation.secrets.random_secrets import digest_of
from identity.models import Connection, Tenant, User
from tests.authapi.browser import Browser, Page
from tests.factories.sign_in import PASSWORD, people, person, web_client


@dataclass
class Account:
    """One user at their account page."""

    tenant: Tenant
    connection: Connection
    user: User
    browser: Browser

    def open(self, section: str = "", **asked: str) -> Page:
        return self.browser.get(f"/account/{section}".rstrip("/"), asked)

    def log_in(self, page: Page | None = None, *, identifier: str = "ada@example.test", password: str = PASSWORD) -> Page:
        """Submit the login to which a page leads, and return the next page."""
        form = self.browser.follow(page or self.open())
        answer = self.browser.submit(form, username=identifier, password=password)
        assert answer.status == 303, answer.text
        return self.browser.follow(answer)

    def send(self, section: str, *, browser: Browser | None = None, token: str | None = None, **fields: str) -> Page:
        """Post the form of a section, with the token of its page."""
        browser = browser or self.browser
        if token is None:
            token = token_of(browser.get(f"/account/{section}"))
        return browser.post(f"/account/{section}", {"form_token": token, **fields}, Origin=f"http://{browser.host}")

    @property
    def session(self) -> Session:
        return Session.objects.of(self.tenant.pk).get(user=self.user)

    @property
    def browser_session(self) -> Session:
        """Return the session of this browser, also if the user has several sessions."""
        return Session.objects.of(self.tenant.pk).get(digest=digest_of(self.browser.cookies["session"]))

    def grow_old(self, **by: int) -> None:
        """Make the last proof of every session older."""
        moment = timezone.now() - timedelta(**(by or {"minutes": 6}))
        Session.objects.of(self.tenant.pk).update(authenticated_at=moment)

    def told(self) -> User:
        """Return the user as currently stored."""
        return User.objects.of(self.tenant.pk).get(pk=self.user.pk)


def token_of(page: Page) -> str:
    """Return the form token of a page."""
    found = re.search(r'name="form_token" value="([^"]+)"', page.body.decode())
    assert found is not None, page.text
    return found.group(1)


def switch(tenant: Tenant, **changes: Any) -> None:
    """Set what users can do at their account page."""
    update_tenant_settings(tenant_id=tenant.pk, changes={"account_page": {"enabled": True, "deletion": True, **changes}})


@pytest.fixture
def closed(tenant: Tenant) -> Account:
    """The account of a user who is not logged in."""
    client, _ = web_client(tenant)
    connection = people(tenant, client)
    switch(tenant)
    return Account(tenant, connection, person(connection), Browser(tenant))


@pytest.fixture
def account(closed: Account) -> Account:
    """The account of a user who has just logged in."""
    assert "Your account" in closed.log_in().text
    return closed
