"""Passwordless logins for applications of every protocol: the pages do not depend on the protocol."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from authapi.models import Client
from authapi.tokens.contexts import PASSWORD
from identity.models import Tenant, User
from identity.services.connections import create_connection
from tests.authapi.browser import Browser, Page
from tests.authapi.passwordless.messages import last_code, last_contents
from tests.authapi.protocols.saml.conftest import Application, saml_client
from tests.factories.sign_in import web_client

ADA = "ada@example.test"
REPLY = "https://wsfed.example.test/wsfed"
Ask = Callable[[Browser], Page]


def followed(browser: Browser, page: Page) -> Page:
    while page.status in (302, 303) and page.location.startswith("/"):
        page = browser.follow(page)
    return page


def saml(tenant: Tenant) -> tuple[Client, Ask]:
    client = saml_client(tenant)
    return client, lambda browser: Application(tenant, client, User(), browser).ask(relay_state="kept")


def wsfed(tenant: Tenant) -> tuple[Client, Ask]:
    client, _ = web_client(tenant, name="Portal", redirect_uris=REPLY, settings={"addons": {"wsfed": {}}})
    return client, lambda browser: browser.get(f"/wsfed/{client.client_id}", {"wctx": "kept"})


@pytest.fixture(params=[(saml, "SAMLResponse", "RelayState"), (wsfed, "wresult", "wctx")], ids=["saml", "wsfed"])
def world(request: pytest.FixtureRequest, tenant: Tenant) -> tuple[Browser, Ask, str, str]:
    made, answer, state = request.param
    client, ask = made(tenant)
    create_connection(tenant_id=tenant.pk, name="email", strategy="email", enabled_clients=[client.client_id], options={})
    return Browser(tenant), ask, answer, state


def test_a_code_logs_in_to_the_application(world: tuple[Browser, Ask, str, str]) -> None:
    browser, ask, answer, state = world
    page = followed(browser, browser.submit(followed(browser, ask(browser)), email=ADA, send="code"))
    posted = browser.submit(page, code=last_code(browser.tenant.pk)).fields()
    assert posted[answer]
    assert posted[state] == "kept"


def test_a_link_logs_in_to_the_application_in_either_browser(world: tuple[Browser, Ask, str, str]) -> None:
    browser, ask, answer, state = world
    for other in (browser, Browser(browser.tenant, address="203.0.113.9")):
        followed(browser, browser.submit(followed(browser, ask(browser)), email=ADA, send="link"))
        parts = urlsplit(last_contents(browser.tenant.pk).link)
        page = other.send("GET", f"{parts.path}?{parts.query}")
        posted = (page if other is browser else other.submit(other.follow(page))).fields()
        assert posted[answer]
        assert posted[state] == "kept"
        browser.cookies.pop("session", None)


def test_a_code_does_not_satisfy_an_application_that_requires_a_password(tenant: Tenant) -> None:
    client, _ = web_client(tenant)
    create_connection(tenant_id=tenant.pk, name="email", strategy="email", enabled_clients=[client.client_id], options={})
    browser = Browser(tenant)
    required = json.dumps({"id_token": {"acr": {"essential": True, "value": PASSWORD}}})
    asked = {"client_id": client.client_id, "response_type": "code", "scope": "openid", "claims": required}
    page = followed(browser, browser.submit(followed(browser, browser.get("/authorize", asked)), email=ADA, send="code"))
    answer = browser.submit(page, code=last_code(tenant.pk)).answer
    assert (answer["error"], "code" in answer) == ("unmet_authentication_requirements", False)
    # The login itself has succeeded. Its session is valid for requests that do not require a password.
    assert "code" in browser.get("/authorize", {**asked, "claims": "", "acr_values": PASSWORD, "prompt": "none"}).answer
