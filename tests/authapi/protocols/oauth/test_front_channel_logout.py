"""OpenID Connect Front-Channel Logout 1.0: the browser notifies every application of the session, in frames of one page."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from authapi.accounts.access import revoke_session
from authapi.clients.logout_addresses import front_channel_problem
from authapi.models import Client, LogoutTransaction, Session
from authapi.services.clients import revoke_client, update_client
from identity.services.failures import Invalid
from identity.services.tenants import create_tenant
from tests.authapi.browser import Browser, Page
from tests.authapi.login.conftest import Login, set_client
from tests.authapi.memory import forget_all
from tests.factories.sign_in import CALLBACK, web_client

HOME = "https://app.example.test/bye"
SHOP, BLOG = "https://app.example.test/front-channel?app=shop", "https://blog.example.test:8443/out"


def addresses_of(page: Page) -> list[str]:
    return re.findall(r'<iframe src="([^"]*)"', page.text)


@pytest.fixture
def blog(login: Login) -> Client:
    """A second application at which users log in with the same session."""
    client, _ = web_client(
        login.tenant,
        name="Blog",
        redirect_uris="https://blog.example.test:8443/callback",
        settings={"frontchannel_logout_uri": BLOG, "frontchannel_logout_session_required": True},
    )
    login.connection.enabled_clients = [*login.connection.enabled_clients, client.client_id]
    login.connection.save()
    return client


@pytest.fixture
def inside(login: Login, blog: Client) -> Login:
    """A browser that is logged in at both applications."""
    set_client(login, post_logout_redirect_uris=HOME, settings={"frontchannel_logout_uri": SHOP})
    login.begin_session()
    asked = {"client_id": blog.client_id, "response_type": "code", "scope": "openid", "prompt": "none"}
    assert "code" in login.browser.get("/authorize", asked).answer
    return login


def logged_out(login: Login) -> Page:
    return login.browser.get("/v2/logout", {"client_id": login.client.client_id, "returnTo": HOME})


def test_a_logout_loads_the_logout_url_of_every_application_of_the_session(inside: Login) -> None:
    session = Session.objects.of(inside.tenant.pk).get()
    redirect = logged_out(inside)
    assert not Session.objects.of(inside.tenant.pk).exists()
    page = inside.browser.follow(redirect)
    shop, blog = addresses_of(page)
    assert (shop.partition("&")[0], blog.partition("?")[0]) == (SHOP, BLOG)
    for address in (shop, blog):
        sent = parse_qs(urlsplit(address).query)
        assert (sent["iss"], sent["sid"]) == ([inside.issuer], [session.pk])


def test_the_content_security_policy_contains_exactly_the_origins_of_the_applications(inside: Login) -> None:
    page = inside.browser.follow(logged_out(inside))
    directives = dict(each.strip().partition(" ")[::2] for each in page.headers["content-security-policy"].split(";"))
    assert directives["frame-src"] == "https://app.example.test https://blog.example.test:8443"
    assert (directives["default-src"], directives["script-src"], directives["frame-ancestors"]) == ("'none'", "'self'", "'none'")
    assert page.headers["referrer-policy"] == "same-origin"
    assert page.text.count('sandbox="allow-scripts allow-same-origin"') == 2


def test_the_page_continues_with_and_without_script(inside: Login) -> None:
    page = inside.browser.follow(logged_out(inside))
    seconds, _, following = page.headers["refresh"].partition(";url=")
    assert 0 < int(seconds) <= 5
    assert f'id="next" href="{following}"' in page.text
    assert "hosted/logout_frames.js" in page.text
    assert inside.browser.get(following).location == HOME


def test_a_logout_page_is_shown_only_once(inside: Login) -> None:
    redirect = logged_out(inside)
    page = inside.browser.follow(redirect)
    inside.browser.get(page.headers["refresh"].partition(";url=")[2])
    assert inside.browser.follow(redirect).status == 400
    assert not LogoutTransaction.objects.of(inside.tenant.pk).exists()


def test_the_handle_of_another_tenant_is_refused(inside: Login) -> None:
    redirect = logged_out(inside)
    other = create_tenant(tenant_id=f"o-{inside.tenant.pk}"[:40], name="Other", host=f"other-{inside.tenant.pk}.example.test")
    page = Browser(other, host=f"other-{inside.tenant.pk}.example.test").get(redirect.location)
    assert (page.status, addresses_of(page)) == (400, [])


def test_an_application_without_a_login_in_the_session_is_not_notified(login: Login, blog: Client) -> None:
    set_client(login, post_logout_redirect_uris=HOME)
    login.begin_session()
    assert logged_out(login).location == HOME


def test_a_revoked_application_is_not_notified(inside: Login, blog: Client) -> None:
    revoke_client(tenant_id=inside.tenant.pk, client_id=blog.client_id)
    assert len(addresses_of(inside.browser.follow(logged_out(inside)))) == 1


def test_a_session_that_the_service_revokes_creates_no_logout_page(inside: Login) -> None:
    revoke_session(Session.objects.of(inside.tenant.pk).get())
    assert not LogoutTransaction.objects.of(inside.tenant.pk).exists()


@pytest.mark.parametrize(
    ("address", "is_good"),
    [
        ("https://app.example.test/out", True),
        ("https://app.example.test:443/out?x=1", True),
        ("http://127.0.0.1:3000/out", True),
        ("http://app.example.test/out", False),
        ("https://app.example.test:8443/out", False),
        ("https://evil.example.test/out", False),
        ("https://any.wild.example.test/out", False),
        ("https://app.example.test/out#top", False),
        ("https://u@app.example.test/out", False),
        ("https://app.example.test;script-src/out", False),
        ("com.example.app://out", False),
        ("javascript:alert(1)", False),
    ],
)
def test_a_logout_url_must_have_the_origin_of_a_callback(address: str, is_good: bool) -> None:
    callbacks = [CALLBACK, "http://127.0.0.1:3000/back", "https://*.wild.example.test/back", "com.example.app://back"]
    assert (front_channel_problem(address, callbacks) is None) is is_good


def test_a_change_that_leaves_no_callback_with_the_origin_of_the_logout_url_is_refused(inside: Login) -> None:
    changes = {"redirect_uris": "https://elsewhere.example.test/callback"}
    with pytest.raises(Invalid) as refused:
        update_client(tenant_id=inside.tenant.pk, client_id=inside.client.client_id, changes=changes)
    assert refused.value.errors == {"frontchannel_logout_uri": ["Scheme, host and port must be the same as in a callback."]}
    forget_all()
