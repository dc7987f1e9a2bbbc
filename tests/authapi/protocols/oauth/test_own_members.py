"""No client can set the internal members of stored requests.

A token or a ticket (the parameters `access_token` and `login_ticket`) can replace a login. If a request is signed or pushed, these
parameters are ignored, both inside the request and in the URL.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from authapi.models import Session
from authapi.protocols.oauth.parameters import LINK_TO, kept, read
from authapi.services.clients import rotate_client_secret
from foundation.tenancy import tenant_bound
from identity.models import LinkedIdentity, Tenant, User
from tests.authapi.browser import Browser, Page
from tests.authapi.login.conftest import Login
from tests.authapi.protocols.legacy.conftest import CALLBACK, OldClient, change, old_client
from tests.authapi.protocols.legacy.test_account_links import begin, logged_in, token_of
from tests.authapi.protocols.legacy.test_cross_origin import arrive, ticket_in
from tests.authapi.protocols.oauth.test_request_objects import register, request_object
from tests.authapi.pushing import Pusher
from tests.factories.identity import make_user
from tests.factories.sign_in import PASSWORD

NAMES = (LINK_TO, LINK_TO.removeprefix(":"))


@pytest.fixture
def old(tenant: Tenant) -> OldClient:
    made = old_client(tenant)
    register(made.client)
    made.client.refresh_from_db()
    return made


@pytest.fixture
def bob(old: OldClient) -> User:
    return make_user(connection=old.connection, email="bob@example.test", password=PASSWORD)


def wanted(old: OldClient, **more: str) -> dict[str, str]:
    good = {"client_id": old.client.client_id, "response_type": "code", "redirect_uri": CALLBACK, "scope": "openid", "state": "st"}
    return {**good, **more}


def in_address(old: OldClient, browser: Browser, more: dict[str, Any]) -> Page:
    return browser.get("/authorize", wanted(old, **more))


def in_form(old: OldClient, browser: Browser, more: dict[str, Any]) -> Page:
    return browser.post("/authorize", wanted(old, **more))


def in_json(old: OldClient, browser: Browser, more: dict[str, Any]) -> Page:
    body = json.dumps(wanted(old, **more)).encode()
    return browser.send("POST", "/authorize", body=body, headers={"content-type": "application/json"})


def as_login(old: OldClient, browser: Browser) -> Login:
    return Login(old.tenant, old.client, old.connection, old.user, browser)


def signed(old: OldClient, browser: Browser, more: dict[str, Any]) -> Page:
    token = request_object(as_login(old, browser), **more)
    return browser.get("/authorize", {"client_id": old.client.client_id, "request": token})


def pushed(old: OldClient, browser: Browser, more: dict[str, Any], **how: Any) -> Page:
    client, secret = rotate_client_secret(tenant_id=old.tenant.pk, client_id=old.client.client_id)
    handle = Pusher(old.tenant, client, secret).handle(**more, **how)
    return browser.get("/authorize", {"client_id": old.client.client_id, "request_uri": handle})


def pushed_as_json(old: OldClient, browser: Browser, more: dict[str, Any]) -> Page:
    return pushed(old, browser, more, as_json=True)


def signed_and_pushed(old: OldClient, browser: Browser, more: dict[str, Any]) -> Page:
    return pushed(old, browser, {"request": request_object(as_login(old, browser), **more)})


def beside_signed(old: OldClient, browser: Browser, more: dict[str, Any]) -> Page:
    token = request_object(as_login(old, browser))
    return browser.get("/authorize", {"client_id": old.client.client_id, "request": token, **more})


def beside_pushed(old: OldClient, browser: Browser, more: dict[str, Any]) -> Page:
    client, secret = rotate_client_secret(tenant_id=old.tenant.pk, client_id=old.client.client_id)
    handle = Pusher(old.tenant, client, secret).handle()
    return browser.get("/authorize", {"client_id": old.client.client_id, "request_uri": handle, **more})


Way = Callable[[OldClient, Browser, dict[str, Any]], Page]
PLAIN = (in_address, in_form, in_json)
COMPLETE = (signed, pushed, pushed_as_json, signed_and_pushed, beside_signed, beside_pushed)


@pytest.mark.parametrize("way", [*PLAIN, *COMPLETE], ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_a_request_cannot_name_the_account_that_is_linked(old: OldClient, bob: User, way: Way, name: str) -> None:
    # The client names the user of the browser's session, and Bob logs in. The service must not link Bob's account.
    browser = logged_in(old)
    page = way(old, browser, {name: old.user.user_id, "prompt": "login"})
    assert "link-account" not in page.location, page.location
    if page.location.startswith("/u/login"):
        browser.submit(browser.follow(page), username="bob@example.test", password=PASSWORD)
    with tenant_bound(old.tenant.pk):
        assert User.objects.filter(pk=bob.pk).exists()
        assert not LinkedIdentity.objects.exists()


@pytest.mark.parametrize("way", COMPLETE, ids=lambda way: way.__name__)
def test_a_token_inside_or_beside_a_signed_or_pushed_request_is_ignored(old: OldClient, way: Way) -> None:
    browser, token = logged_in(old), token_of(old)
    assert begin(old, logged_in(old), token).location.startswith("/u/link-account")
    page = way(old, browser, {"access_token": token})
    assert "link-account" not in page.location
    assert "code" in page.answer


@pytest.mark.parametrize("way", COMPLETE, ids=lambda way: way.__name__)
def test_a_ticket_inside_or_beside_a_signed_or_pushed_request_is_ignored(old: OldClient, way: Way) -> None:
    ticket = ticket_in(old)
    page = way(old, old.browser, {"login_ticket": ticket})
    assert page.location.startswith("/u/login"), page.location
    assert not Session.objects.of(old.tenant.pk).exists()
    # The ticket was not used up.
    assert "id_token" in arrive(old, ticket).answer


def test_a_client_that_must_push_or_sign_requests_cannot_log_a_user_in_with_a_ticket(old: OldClient) -> None:
    for settings in ({"require_pushed_authorization_requests": True}, {"signed_request_object": {"required": True}}):
        ticket, before = ticket_in(old), dict(old.client.settings)
        old.set(settings=settings)
        assert "error" in arrive(old, ticket).answer
        assert not Session.objects.of(old.tenant.pk).exists()
        change(old.client, settings={name: before.get(name) for name in settings})


def test_a_client_that_must_push_or_sign_requests_cannot_link_an_account_with_a_token(old: OldClient) -> None:
    for settings in ({"require_pushed_authorization_requests": True}, {"signed_request_object": {"required": True}}):
        token, before = token_of(old), dict(old.client.settings)
        old.set(settings=settings)
        assert "error" in begin(old, logged_in(old), token).answer
        change(old.client, settings={name: before.get(name) for name in settings})


def test_a_request_cannot_set_internal_members_of_the_service() -> None:
    sent = [(":pushed", "x"), (":signed", "x"), (LINK_TO, "x"), (":anything", "x"), ("state", "st")]
    assert read(sent).state == {"state": "st"}
    own = kept({"state": "st", LINK_TO: "user", ":pushed": "digest", ":signed": "1 jti"})
    assert (own.link_to, own.pushed, own.signed, dict(own.values)) == ("user", "digest", "1 jti", {"state": "st"})
