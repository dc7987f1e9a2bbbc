"""An organization that invites users to an application, and the browser of a user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from django.core import mail

from authapi.edge import buckets
from authapi.invitations.offers import NewInvitation, create_invitation
from authapi.models import Invitation
from authapi.tenant_settings import remembered_settings
from identity.models import Job, Organization, OrganizationMember, User
from identity.services.jobs import run_job
from identity.services.memberships import add_connection
from tests.authapi.browser import Browser, Page
from tests.authapi.login.conftest import Login, login, set_client  # noqa: F401  (this fixture is used here, too)
from tests.factories.organizations import make_organization
from tests.factories.sign_in import PASSWORD

ROUTE = "https://app.example.test/login"
GUEST = "grace@example.test"


@pytest.fixture(autouse=True)
def _fresh_memory() -> None:
    remembered_settings.clear()
    buckets.buckets.cache_clear()


@dataclass
class Host:
    """An organization, and the steps of users with its invitations."""

    login: Login
    organization: Organization

    @property
    def tenant_id(self) -> str:
        return self.login.tenant.pk

    @property
    def browser(self) -> Browser:
        return self.login.browser

    def invite(self, email: str = GUEST, **wanted: Any) -> Invitation:
        fields = {"inviter_name": "Ada", "client_id": self.login.client.client_id, **wanted}
        return create_invitation(
            tenant_id=self.tenant_id,
            organization_id=self.organization.pk,
            wanted=NewInvitation(email=email, **fields),
            address=self.address,
        )

    @property
    def address(self) -> str:
        return f"http://{self.browser.host}"

    def open_mail(self, browser: Browser | None = None) -> Page:
        """Let the worker send the newest mail, and open its link."""
        return (browser or self.browser).get("/u/invitation/open", {"ticket": self.mailed_secret()})

    def mailed_secret(self) -> str:
        assert run_job(Job.objects.of(self.tenant_id).filter(type=Job.Type.MESSAGE).latest("created_at").pk)
        found = re.search(r"/u/invitation/open\?ticket=(\S+)", str(mail.outbox[-1].body))
        assert found, mail.outbox[-1].body
        return found.group(1)

    def ask(self, invitation: Invitation | str, **changes: Any) -> Page:
        """Go to `/authorize` as the application does, and load the first page."""
        ticket = invitation if isinstance(invitation, str) else invitation.ticket
        answer = self.login.ask(**{"invitation": ticket, "organization": self.organization.pk, **changes})
        return self.browser.follow(answer) if answer.location.startswith("/u/") else answer

    def sign_up(self, page: Page, **fields: str) -> Page:
        """Submit the form of the sign-up, and load the next page."""
        sent = {**page.fields(), "email": GUEST, "password": PASSWORD, **fields}
        answer = self.browser.post("/u/signup", sent, Origin=self.address)
        return self.followed(answer)

    def log_in(self, page: Page, **fields: str) -> Page:
        """Submit the form of the login with the same request, and load the next page."""
        sent = {**page.fields(), "username": "ada@example.test", "password": PASSWORD, **fields}
        return self.followed(self.browser.post("/u/login", sent, Origin=self.address))

    def followed(self, answer: Page) -> Page:
        return self.browser.follow(answer) if answer.status in (302, 303) and answer.location.startswith("/u/") else answer

    def answer(self, page: Page, words: str = "accept", **fields: str) -> Page:
        return self.browser.submit(page, answer=words, **fields)

    def members(self) -> list[User]:
        rows = OrganizationMember.objects.of(self.tenant_id).filter(organization=self.organization)
        return [row.user for row in rows.select_related("user").order_by("pk")]


@pytest.fixture
def host(login: Login) -> Host:  # noqa: F811  (the fixture)
    return host_of(login)


def host_of(login: Login) -> Host:  # noqa: F811  (no fixture here)
    """Return the organization Acme, which invites users to the application of this login."""
    set_client(login, settings={"organization_usage": "allow", "initiate_login_uri": ROUTE})
    acme = make_organization(login.tenant, "acme", display_name="Acme")
    add_connection(tenant_id=login.tenant.pk, organization_id=acme.pk, connection_id=login.connection.pk)
    return Host(login, acme)
