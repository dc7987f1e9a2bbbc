"""A tenant with an application that requests approvals, a user, and the browser of that user."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from authapi.grants.ciba import GRANT
from authapi.models import CibaRequest, Client, SignIn
from authapi.tokens.ciba_requests import Approval, approve_request
from foundation.secrets.random_secrets import digest_of
from identity.models import Connection, Job, Tenant, User
from identity.services.jobs import run_job
from tests.authapi.asgi_client import Received, ask_token, post
from tests.authapi.browser import Browser, Page
from tests.factories.authapi import host_of
from tests.factories.sign_in import PASSWORD, people, person, session_of, web_client

PATH = "/bc-authorize"
SERVER = "198.51.100.7"


@dataclass
class CallCenter:
    """A confidential client on a server, and the user whose approval the client requests."""

    tenant: Tenant
    client: Client
    secret: str
    connection: Connection
    user: User
    browser: Browser
    begun: dict[str, Any] = field(default_factory=dict)

    @property
    def proof(self) -> dict[str, str]:
        return {"client_id": self.client.client_id, "client_secret": self.secret}

    @property
    def row(self) -> CibaRequest:
        return CibaRequest.objects.of(self.tenant.pk).get(auth_req_id=digest_of(self.begun["auth_req_id"]))

    def hint(self, **changes: Any) -> str:
        return json.dumps({"format": "iss_sub", "iss": host_of(self.tenant).issuer, "sub": self.user.user_id, **changes})

    def start(self, *, headers: Mapping[str, str] | None = None, as_json: bool = False, **changes: Any) -> Received:
        fields = {**self.proof, "scope": "openid profile", "binding_message": "21-49-38", "login_hint": self.hint(), **changes}
        sent = {name: value for name, value in fields.items() if value is not None}
        return post(PATH, self.tenant, sent, headers=headers, as_json=as_json, address=SERVER)

    def refusal(self, **changes: Any) -> tuple[int, str]:
        answer = self.start(**changes)
        return answer.status, answer.json()["error"]

    def begin(self, **changes: Any) -> str:
        """Request an approval, and return the path of the mailed link."""
        answer = self.start(**changes)
        assert answer.status == 200, answer.body
        self.begun = answer.json()
        self.deliver()
        return self.mailed_link()

    def deliver(self) -> None:
        """Process the waiting messages as a worker does."""
        for job in Job.objects.of(self.tenant.pk).filter(type=Job.Type.MESSAGE, status=Job.Status.PENDING):
            assert run_job(job.pk)

    def mailed_link(self) -> str:
        found = re.search(r"https?://[^/]+(/approve\?ticket=[\w-]{43})\s", str(mail.outbox[-1].body))
        assert found, mail.outbox[-1].body
        return found[1]

    def poll(self, *, headers: Mapping[str, str] | None = None, **changes: Any) -> Received:
        fields = {"grant_type": GRANT, "auth_req_id": self.begun["auth_req_id"], **self.proof, **changes}
        sent = {name: value for name, value in fields.items() if value is not None}
        return ask_token(self.tenant, sent, headers=headers, address=SERVER)

    def error(self, **changes: Any) -> tuple[int, str]:
        answer = self.poll(**changes)
        return answer.status, answer.json()["error"]

    def wait(self, seconds: float) -> None:
        """Move the time of the application's last poll into the past."""
        row = self.row
        assert row.last_checked is not None
        self.change(last_checked=row.last_checked - timedelta(seconds=seconds))

    def expire(self) -> None:
        self.change(expires=timezone.now() - timedelta(seconds=1))

    def change(self, **columns: Any) -> None:
        CibaRequest.objects.of(self.tenant.pk).filter(pk=self.row.pk).update(**columns)

    def open(self, link: str, browser: Browser | None = None, *, email: str = "ada@example.test") -> Page:
        """Open the link and log in if required. Return the approval page, or the page that the service shows instead."""
        browser = browser or self.browser
        page = browser.get(link)
        if page.headers.get("location", "").startswith("/u/login"):
            page = browser.submit(browser.follow(page), username=email, password=PASSWORD)
        return browser.follow(page) if "location" in page.headers else page

    def answer(self, link: str, answer: str = "allow") -> Page:
        return self.browser.submit(self.open(link), answer=answer)

    def approve(self, *, scopes: tuple[str, ...] = ("openid", "profile"), audience: str = "", **changes: Any) -> CallCenter:
        """Approve a request without pages."""
        self.begin(**changes)
        session, _ = session_of(self.user)
        approve_request(self.tenant.pk, self.row.pk, Approval(session, audience, scopes, None, "192.0.2.1"))
        return self

    def lines(self) -> list[str]:
        return list(SignIn.objects.of(self.tenant.pk).order_by("created_at").values_list("type", flat=True))


def call_center(tenant: Tenant, **changes: Any) -> CallCenter:
    fields: dict[str, Any] = {"name": "Call center", "grant_types": [GRANT, "refresh_token"], "redirect_uris": ""}
    fields |= {"token_endpoint_auth_method": "client_secret_post", **changes}
    client, secret = web_client(tenant, **fields)
    connection = people(tenant, client)
    return CallCenter(tenant, client, secret, connection, person(connection), Browser(tenant))


@pytest.fixture(autouse=True)
def no_messages_left(tenant: Tenant) -> Iterator[None]:
    """Delete the jobs of waiting messages, because a sweep in another test would run these jobs."""
    yield
    Job.objects.of(tenant.pk).delete()


@pytest.fixture
def center(tenant: Tenant) -> CallCenter:
    return call_center(tenant)
