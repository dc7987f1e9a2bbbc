"""Users with second factors at the hosted pages: settings of the tenant, factors of the user, and the steps of a login."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import override_settings

from authapi.factors.settings import remembered_factors
from authapi.models import TenantSettings
from foundation.secrets import totp
from identity.factors.ceremonies import NewCredential, RelyingParty, verified_registration
from identity.factors.user_factors import add_key, begin_enrolment, confirm_enrolment
from identity.messages.queue import _Content
from identity.models import EnrolledFactor, Job, Tenant, User
from tests.authapi.browser import Browser, Page
from tests.authapi.login.conftest import Login
from tests.authapi.login.conftest import login as login
from tests.factories.authenticator import Authenticator

NUMBER = "+4915112345678"


def set_factors(tenant: Tenant, *factors: str, **settings: Any) -> None:
    """Replace the settings of second factors of a tenant, and turn on `factors`, which are names of the management interface."""
    values = {"factors": [*factors, "recovery-code"], **settings}
    TenantSettings.objects.of(tenant.pk).update_or_create(tenant_id=tenant.pk, defaults={"second_factors": values})
    remembered_factors.clear()


def give_app(user: User) -> tuple[str, str]:
    """Enroll an authenticator app; return its secret and the recovery code."""
    secret = totp.new_secret()
    return secret, _enrolled(user, kind="totp", secret=secret)


def give_address(user: User, kind: str, address: str) -> str:
    """Enroll a phone number or an email address; return the recovery code."""
    return _enrolled(user, kind=kind, address=address)


def _enrolled(user: User, **fields: str) -> str:
    factor = begin_enrolment(tenant_id=user.tenant_id, user_id=user.user_id, **fields)
    return confirm_enrolment(tenant_id=user.tenant_id, user_id=user.user_id, device=factor.device).recovery_code


def give_key(user: User, host: str, kind: str = "webauthn-roaming") -> Authenticator:
    """Enroll a security key that was created at a host of the tenant."""
    key, party = Authenticator(origin=f"http://{host}", rp_id=host, verifies=False), RelyingParty(host, "Example", f"http://{host}")
    asked = {"user": {"id": ""}, "challenge": "eA"}
    made: NewCredential = verified_registration(key.made(asked), party, challenge=b"x", is_passkey=False)
    add_key(tenant_id=user.tenant_id, user_id=user.user_id, kind=kind, made=made, relying_party=host)
    # A security key that is not a passkey does not store the id of the account.
    key.user_handle = ""
    return key


def app_code(secret: str, *, steps: int = 0) -> str:
    """Return the code that the app shows now, or `steps` steps of 30 seconds later."""
    return totp.code_of(secret, totp.step_at(time.time()) + steps)


def messages_of(tenant: Tenant) -> list[Job]:
    return list(Job.objects.of(tenant.pk).filter(type=Job.Type.MESSAGE, parameters__kind__startswith="mfa").order_by("created_at", "pk"))


def sent_code(tenant: Tenant) -> str:
    """Return the code of the newest message, decrypted with the key of the worker."""
    return str(_Content.opened(messages_of(tenant)[-1]).context["code"])


def notices_of(tenant: Tenant) -> list[str]:
    """Return the changes of factors about which the service sent mails, oldest first."""
    jobs = Job.objects.of(tenant.pk).filter(type=Job.Type.MESSAGE, parameters__kind="factor_notice").order_by("created_at", "pk")
    return [str(_Content.opened(job).context["change"]) for job in jobs]


def devices_of(user: User) -> list[str]:
    """Return the kinds of the confirmed second factors of a user."""
    rows = EnrolledFactor.objects.of(user.tenant_id).filter(user=user, is_confirmed=True, kind__in=EnrolledFactor.SECOND_FACTORS)
    return sorted(rows.values_list("kind", flat=True))


@dataclass
class Walk:
    """The steps of logins with second factors in one browser of a user."""

    at: Login
    browser: Browser = field(init=False)

    def __post_init__(self) -> None:
        self.browser = self.at.browser

    def followed(self, page: Page) -> Page:
        """Follow redirects on this host."""
        while page.status in (302, 303) and page.location.startswith("/"):
            page = self.browser.follow(page)
        return page

    def to_second(self, **asked: Any) -> Page:
        """Start a login and submit the password; return the next page."""
        return self.followed(self.at.log_in(self.at.ask(**asked)))

    def again(self, **asked: Any) -> Page:
        """Start a login again with the existing session; return the page or the answer."""
        return self.followed(self.at.ask(**asked))

    def give(self, page: Page, **fields: str) -> Page:
        return self.followed(self.browser.submit(page, **fields))

    def again_at(self, page: Page) -> Page:
        """Load the page of a form again."""
        return self.browser.get(page.form_action(), {"state": page.fields()["state"]})

    def options(self, page: Page) -> dict[str, Any]:
        """Return the options that the page passes to a security key."""
        found = re.search(r'data-options="([^"]*)"', page.body.decode())
        assert found is not None, page.text
        options: dict[str, Any] = json.loads(html.unescape(found.group(1)))
        return options


def another(walk: Walk, *, address: str = "192.0.2.99") -> Walk:
    """Return another browser, used by another person who knows the user's password."""
    at = walk.at
    return Walk(Login(at.tenant, at.client, at.connection, at.user, Browser(at.tenant, address=address)))


@pytest.fixture
def walk(login: Login) -> Iterator[Walk]:
    with override_settings(SMS_SENDER={"kind": "console"}):
        yield Walk(login)
        remembered_factors.clear()
