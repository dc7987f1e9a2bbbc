"""*Test connection* of OpenID, OAuth 2.0 and social connections: values for the provider, and a test login without a session."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from django.contrib.admin.utils import quote
from django.test import Client as AdminBrowser
from django.urls import reverse

from authapi.models import ConnectionTest, Session
from authapi.upstream.social.known_providers import KNOWN
from identity.models import Connection, Tenant, User
from identity.services.connections import create_connection
from tests.authapi.upstream.social.conftest import Begin
from tests.factories.admin import browser_of, new_staff
from tests.factories.provider import SECRET
from tests.factories.social_provider import ACCESS_TOKEN, APPLE_KEY, CODE, SocialLogin


@pytest.fixture
def staff(tenant: Tenant) -> AdminBrowser:
    return browser_of(new_staff(tenant))


def page(connection: Connection) -> str:
    return reverse("admin:identity_connection_provider", args=(quote(connection.pk),))


def shown(staff: AdminBrowser, connection: Connection) -> str:
    answer = staff.get(page(connection))
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def begun(staff: AdminBrowser, login: SocialLogin) -> dict[str, str]:
    """Start a test in the admin and go to the provider. Return the parameters that the browser sends to the provider."""
    content = staff.post(page(login.connection), {"test": "1"}).content.decode()
    query = content.partition("/u/connection-test?")[2].partition('"')[0]
    elsewhere = login.browser.get(f"/u/connection-test?{query}")
    assert elsewhere.status_code == 302, elsewhere.content
    sent = dict(parse_qsl(urlsplit(elsewhere["Location"]).query))
    login.provider.asked, login.provider.nonce = sent, sent.get("nonce", "")
    return sent


@pytest.mark.parametrize("strategy", KNOWN)
def test_a_test_login_shows_the_user_and_starts_no_session(at: Begin, staff: AdminBrowser, strategy: str) -> None:
    login = at(strategy)
    sent = begun(staff, login)
    answer = {"code": CODE, "state": sent["state"]}
    response = (login.browser.post if "response_mode" in sent else login.browser.get)("/login/callback", answer)
    assert b"The test worked" in response.content
    assert login.provider.refused == []
    content = shown(staff, login.connection)
    assert "ada@people.example.test" in content or "privaterelay.appleid.com" in content
    for secret in (SECRET, ACCESS_TOKEN, APPLE_KEY.as_pem(private=True).decode().splitlines()[1]):
        assert secret not in content
    assert not User.objects.of(login.tenant.pk).exists()
    assert not Session.objects.of(login.tenant.pk).exists()
    # The test has ended, so a second answer is refused.
    assert login.browser.get("/login/callback", {"code": CODE, "state": sent["state"]}).status_code == 400


def test_a_failed_test_login_explains_what_to_fix(at: Begin, staff: AdminBrowser) -> None:
    login = at("google-oauth2")
    sent = begun(staff, login)
    login.provider.nonce = "of another login"
    assert b"The test failed" in login.browser.get("/login/callback", {"code": CODE, "state": sent["state"]}).content
    assert "A claim is invalid" in shown(staff, login.connection)


@pytest.mark.parametrize("answer", [{"SAMLResponse": "PHgvPg=="}, {"wresult": "x"}], ids=["SAML", "WS-Federation"])
def test_an_answer_of_another_protocol_makes_the_test_login_fail(at: Begin, staff: AdminBrowser, answer: dict[str, str]) -> None:
    login = at("github")
    state = begun(staff, login)["state"]
    response = login.browser.post("/login/callback", {**answer, "RelayState" if "SAMLResponse" in answer else "wctx": state})
    assert b"The test failed" in response.content
    assert "but the connection uses another protocol" in shown(staff, login.connection)


def test_the_page_shows_the_callback_and_what_is_missing(tenant: Tenant, staff: AdminBrowser) -> None:
    connection = create_connection(tenant_id=tenant.pk, name="github", strategy="github")
    content = shown(staff, connection)
    assert f"http://{tenant.pk}.example.test/login/callback" in content
    assert "github has no client_id" in content
    assert "Certificates of the provider" not in content
    assert "has no client_id" in staff.post(page(connection), {"test": "1"}).content.decode()
    assert not ConnectionTest.objects.of(tenant.pk).exists()
