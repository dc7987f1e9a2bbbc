"""A tenant with the client of a device, a user, and the browser of that user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from authapi.grants.device_code import GRANT
from authapi.models import Client, DeviceGrant, SignIn
from authapi.services.tenant_settings import update_tenant_settings
from foundation.secrets.random_secrets import digest_of
from identity.models import Connection, Tenant, User
from tests.authapi.asgi_client import Received, ask_token, post
from tests.authapi.browser import Browser, Page
from tests.authapi.memory import forget_all
from tests.factories.sign_in import PASSWORD, people, person, web_client

DEVICE = "/oauth/device/code"


@dataclass
class Television:
    """A public client on a device, and its user."""

    tenant: Tenant
    client: Client
    secret: str
    connection: Connection
    user: User
    browser: Browser
    codes: dict[str, Any] = field(default_factory=dict)

    @property
    def proof(self) -> dict[str, str]:
        return {"client_id": self.client.client_id, **({"client_secret": self.secret} if self.secret else {})}

    @property
    def row(self) -> DeviceGrant:
        return DeviceGrant.objects.of(self.tenant.pk).get(device_code=digest_of(self.codes["device_code"]))

    def start(
        self, *, headers: Mapping[str, str] | None = None, as_json: bool = False, address: str = "198.51.100.7", **changes: Any
    ) -> Received:
        fields = {**self.proof, "scope": "openid profile", **changes}
        sent = {name: value for name, value in fields.items() if value is not None}
        named = {"User-Agent": "Television/2.1", **(headers or {})}
        return post(DEVICE, self.tenant, sent, headers=named, as_json=as_json, address=address)

    def begin(self, **changes: Any) -> str:
        """Request codes, and return the user code."""
        answer = self.start(**changes)
        assert answer.status == 200, answer.body
        self.codes = answer.json()
        return str(self.codes["user_code"])

    def poll(self, *, headers: Mapping[str, str] | None = None, **changes: Any) -> Received:
        fields = {"grant_type": GRANT, "device_code": self.codes["device_code"], **self.proof, **changes}
        sent = {name: value for name, value in fields.items() if value is not None}
        return ask_token(self.tenant, sent, headers=headers, address="198.51.100.7")

    def wait(self, seconds: float) -> None:
        """Make the time of the device's last poll older."""
        self._move("last_checked", -timedelta(seconds=seconds))

    def expire(self) -> None:
        """Let the codes expire."""
        DeviceGrant.objects.of(self.tenant.pk).filter(pk=self.row.pk).update(expires=timezone.now() - timedelta(seconds=1))

    def _move(self, moment: str, by: timedelta) -> None:
        row = self.row
        DeviceGrant.objects.of(self.tenant.pk).filter(pk=row.pk).update(**{moment: getattr(row, moment) + by})

    def enter(self, code: str, browser: Browser | None = None) -> Page:
        """Type a code into the page and submit it."""
        browser = browser or self.browser
        return browser.submit(browser.get("/activate"), user_code=code)

    def ask(self, code: str | None = None) -> Page:
        """Enter the code and log in. Return the confirmation page."""
        page = self.enter(code or self.codes["user_code"])
        if page.location.startswith("/u/login"):
            page = self.browser.submit(self.browser.follow(page), username="ada@example.test", password=PASSWORD)
        return self.browser.follow(page)

    def allow(self) -> Page:
        return self.browser.submit(self.ask(), answer="allow")

    def error(self, **changes: Any) -> tuple[int, str]:
        answer = self.poll(**changes)
        return answer.status, answer.json()["error"]

    def lines(self) -> list[str]:
        return list(SignIn.objects.of(self.tenant.pk).order_by("created_at").values_list("type", flat=True))


def television(tenant: Tenant, **changes: Any) -> Television:
    fields: dict[str, Any] = {"name": "Television", "grant_types": [GRANT, "refresh_token"], "token_endpoint_auth_method": "none"}
    client, secret = web_client(tenant, **{**fields, "redirect_uris": "", **changes})
    connection = people(tenant, client)
    return Television(tenant, client, secret, connection, person(connection), Browser(tenant))


@pytest.fixture
def tv(tenant: Tenant) -> Television:
    return television(tenant)


def set_form(tenant: Tenant, **device_flow: str) -> None:
    update_tenant_settings(tenant_id=tenant.pk, changes={"device_flow": device_flow})
    forget_all()
