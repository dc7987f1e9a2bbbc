"""Cookies over real TLS: limited to one host, secure, hidden from scripts, and separate for staff, users and tenants."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from http.client import HTTPSConnection
from http.cookies import Morsel, SimpleCookie
from urllib.parse import urlencode

import pytest
from pytest_django.plugin import DjangoDbBlocker

from authapi.login.cookies import form_token
from authapi.models import Client, Session
from config.launcher.tls import ServerCertificate, server_certificate
from identity.models import Tenant
from tests.authapi.browser import FORM, Page
from tests.conformance.web_process import WebProcess, tls_web_process
from tests.factories.admin import PASSWORD as STAFF_PASSWORD
from tests.factories.admin import new_staff, new_tenant
from tests.factories.sign_in import CALLBACK, PASSWORD, people, person, web_client

PLATFORM = "localhost"
EMAIL = "ada@example.test"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> ServerCertificate:
    return server_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def web(certificate: ServerCertificate, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    """Start a process that serves TLS itself."""
    with django_db_blocker.unblock(), tls_web_process(certificate, PLATFORM_HOST=PLATFORM) as web:
        yield web


class Visitor:
    """A client that visits hosts of one process over TLS. It stores no cookies: a test reads them from a page and sends them again."""

    def __init__(self, web: WebProcess, certificate: ServerCertificate) -> None:
        self._port = web.address[1]
        self._context = ssl.create_default_context(cafile=str(certificate.authority))

    def ask(self, host: str, path: str, *, cookies: dict[str, str] | None = None, form: dict[str, str] | None = None) -> Page:
        connection = HTTPSConnection("localhost", self._port, context=self._context, timeout=30)
        headers = {"Host": host, "Cookie": "; ".join(f"{name}={value}" for name, value in (cookies or {}).items())}
        if form is not None:
            headers |= {"Content-Type": FORM, "Origin": f"https://{host}", "Referer": f"https://{host}{path}"}
        try:
            connection.request("GET" if form is None else "POST", path, urlencode(form) if form is not None else None, headers)
            answer = connection.getresponse()
            lines = [value for name, value in answer.getheaders() if name.lower() == "set-cookie"]
            return Page(answer.status, {name.lower(): value for name, value in answer.getheaders()}, lines, answer.read())
        finally:
            connection.close()


@pytest.fixture
def visitor(web: WebProcess, certificate: ServerCertificate, committed_db: None) -> Visitor:
    return Visitor(web, certificate)


def cookies_of(*pages: Page) -> dict[str, Morsel[str]]:
    return {name: morsel for page in pages for line in page.set_cookies for name, morsel in SimpleCookie(line).items()}


def values_of(*pages: Page) -> dict[str, str]:
    return {name: morsel.value for name, morsel in cookies_of(*pages).items()}


def assert_bound_to_the_host(morsel: Morsel[str], *, same_site: str) -> None:
    """Assert the rules of the prefix `__Host-` (RFC 6265bis, 4.1.3.2): the cookie is secure, for every path, and for exactly one host."""
    assert morsel.key.startswith("__Host-")
    assert (morsel["secure"], morsel["path"], morsel["domain"], morsel["samesite"]) == (True, "/", "", same_site)


def signed_in_staff(visitor: Visitor) -> tuple[list[Page], dict[str, str]]:
    staff = new_staff(None)
    opened = visitor.ask(PLATFORM, "/admin/login/")
    form = {"username": staff.email, "password": STAFF_PASSWORD, "csrfmiddlewaretoken": opened.fields()["csrfmiddlewaretoken"]}
    entered = visitor.ask(PLATFORM, "/admin/login/", cookies=values_of(opened), form=form)
    assert entered.status == 302, entered.text
    return [opened, entered], values_of(opened, entered)


def signed_in_user(visitor: Visitor, tenant: Tenant) -> tuple[list[Page], dict[str, str], Client]:
    client, _ = web_client(tenant)
    person(people(tenant, client), email=EMAIL)
    opened, host = visitor.ask(host_of(tenant), authorize(client)), host_of(tenant)
    cookies = values_of(opened)
    form_page = visitor.ask(host, opened.location, cookies=cookies)
    fields = {**form_page.fields(), "identifier": EMAIL, "username": EMAIL, "password": PASSWORD}
    entered = visitor.ask(host, form_page.form_action() or opened.location, cookies=cookies, form=fields)
    assert entered.status in (302, 303), entered.text
    return [opened, form_page, entered], {**cookies, **values_of(entered)}, client


def host_of(tenant: Tenant) -> str:
    return f"{tenant.pk}.example.test"


def authorize(client: Client, **changes: str) -> str:
    asked = {"response_type": "code", "client_id": client.client_id, "redirect_uri": CALLBACK, "scope": "openid", "state": "s"}
    return f"/authorize?{urlencode({**asked, **changes})}"


def test_every_cookie_of_staff_is_limited_to_the_host(visitor: Visitor) -> None:
    pages, cookies = signed_in_staff(visitor)
    found = cookies_of(*pages)
    assert set(found) == {"__Host-staff", "__Host-csrf", "__Host-staff_device"}
    for morsel in found.values():
        assert_bound_to_the_host(morsel, same_site="Lax")
    assert found["__Host-staff"]["httponly"]
    assert visitor.ask(PLATFORM, "/admin/", cookies=cookies).status == 200
    # Messages of pages are stored in the session and not in their own cookie.
    told = visitor.ask(PLATFORM, "/admin/identity/user/nobody/change/", cookies=cookies)
    assert set(cookies_of(told)) <= {"__Host-staff", "__Host-csrf", "__Host-staff_device"}


def test_every_cookie_of_a_user_is_limited_to_the_host_and_hidden_from_scripts(visitor: Visitor, tenant: Tenant) -> None:
    pages, _, _ = signed_in_user(visitor, tenant)
    found = cookies_of(*pages)
    assert set(found) == {"__Host-session", "__Host-browser", "__Host-known", "__Host-account", "__Host-device"}
    for morsel in found.values():
        # Providers answer with a POST, and applications request silent logins from a frame. Both requests are cross-site, so
        # browsers send only cookies with `SameSite=None`.
        assert_bound_to_the_host(morsel, same_site="None")
        assert morsel["httponly"]


def test_a_cookie_without_its_prefix_is_ignored(visitor: Visitor, tenant: Tenant) -> None:
    # Another host of the domain can set a cookie without the prefix.
    _, cookies, client = signed_in_user(visitor, tenant)
    bare = {name.removeprefix("__Host-"): value for name, value in cookies.items()}
    assert "login_required" in visitor.ask(host_of(tenant), authorize(client, prompt="none"), cookies=bare).location
    _, staff = signed_in_staff(visitor)
    assert visitor.ask(PLATFORM, "/admin/", cookies={name.removeprefix("__Host-"): value for name, value in staff.items()}).status == 302


def test_cookies_of_staff_and_of_users_cannot_replace_each_other(visitor: Visitor, tenant: Tenant) -> None:
    _, user, client = signed_in_user(visitor, tenant)
    _, staff = signed_in_staff(visitor)
    assert "code=" in visitor.ask(host_of(tenant), authorize(client, prompt="none"), cookies=user).location
    swapped_user = {"__Host-session": staff["__Host-staff"], "__Host-browser": user["__Host-browser"]}
    swapped_staff = {"__Host-staff": user["__Host-session"], "__Host-csrf": staff["__Host-csrf"]}
    for cookies in (staff, swapped_user):
        assert "login_required" in visitor.ask(host_of(tenant), authorize(client, prompt="none"), cookies=cookies).location
    for cookies in (user, swapped_staff):
        assert visitor.ask(PLATFORM, "/admin/", cookies=cookies).status == 302
    assert visitor.ask(host_of(tenant), "/admin/", cookies=staff).status == 404


def test_the_session_of_one_tenant_is_unknown_at_another_tenant(visitor: Visitor, tenant: Tenant) -> None:
    _, cookies, _ = signed_in_user(visitor, tenant)
    other = new_tenant()
    client, _ = web_client(other)
    people(other, client)
    assert "login_required" in visitor.ask(host_of(other), authorize(client, prompt="none"), cookies=cookies).location
    posted = {"form_token": form_token(cookies["__Host-session"]), "answer": "yes"}
    visitor.ask(host_of(other), "/u/logout", cookies=cookies, form=posted)
    assert Session.objects.of(tenant.pk).count() == 1
