"""The provider page of a connection, tests of connections, and refused messages in the sign-in log."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client as AdminBrowser
from django.urls import reverse
from django.utils import timezone

from authapi.models import ConnectionTest, ProviderMetadata, RefusedMessage, Session, SignIn, UsedAssertion
from authapi.upstream.expiring import ending_certificates
from identity.models import AuditEntry, Connection, Tenant, User
from identity.services.connections import create_connection, update_connection
from identity.services.failures import Invalid
from tests.factories.admin import browser_of, new_staff
from tests.factories.models.identity import ConnectionFactory, UserFactory
from tests.factories.saml_login import SamlLogin, fields_of, saml_login
from tests.factories.saml_provider import OTHER, POST, SIGN_IN, SIGNING, key_pair, metadata
from tests.factories.scim import misbehaving_server, reply
from tests.factories.wsfed_provider import Token, federation_metadata


@pytest.fixture
def browser(tenant: Tenant) -> AdminBrowser:
    return browser_of(new_staff(tenant))


def page(connection: Connection) -> str:
    return reverse("admin:identity_connection_provider", args=(quote(connection.pk),))


def shown(browser: AdminBrowser, connection: Connection) -> str:
    answer = browser.get(page(connection))
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def begun(browser: AdminBrowser, login: SamlLogin) -> str:
    """Start a test in the admin. Return the URL at which the test continues."""
    content = browser.post(page(login.connection), {"test": "1"}).content.decode()
    address = content.partition("/u/connection-test?")[2].partition('"')[0]
    assert address, content
    return f"/u/connection-test?{address}"


def test_the_page_shows_the_values_for_the_provider_and_the_known_metadata(tenant: Tenant, browser: AdminBrowser) -> None:
    login = saml_login(tenant)
    content = shown(browser, login.connection)
    for value in (login.entity_id, "login/callback?connection=corp", "/samlp/metadata?connection=corp", SIGN_IN, SIGNING.known.thumbprint):
        assert value in content
    assert "Valid" in content


def test_urls_have_the_port_of_the_page_if_there_is_no_proxy(tenant: Tenant, browser: AdminBrowser) -> None:
    login = saml_login(tenant)
    content = browser.get(page(login.connection), headers={"host": "localhost:8300"}).content.decode()
    assert ":8300/samlp/metadata?connection=corp" in content
    begun_test = browser.post(page(login.connection), {"test": "1"}, headers={"host": "localhost:8300"}).content.decode()
    assert ":8300/u/connection-test?" in begun_test


def test_an_incomplete_connection_shows_our_values_and_says_what_is_missing(tenant: Tenant, browser: AdminBrowser) -> None:
    login = saml_login(tenant, is_complete=False)
    content = shown(browser, login.connection)
    assert login.entity_id in content
    assert "corp has no sign-in address" in content


def test_the_page_warns_of_the_risk_of_logins_that_the_provider_starts(tenant: Tenant, browser: AdminBrowser) -> None:
    login = saml_login(tenant, idpinitiated={"enabled": True, "client_id": "c"})
    assert "log a user in to an attacker's account" in " ".join(shown(browser, login.connection).split())


def test_connections_of_other_strategies_have_no_provider_page(tenant: Tenant, browser: AdminBrowser) -> None:
    other = create_connection(tenant_id=tenant.pk, name="people", strategy="database")
    assert browser.get(page(other)).status_code == 404
    change = browser.get(reverse("admin:identity_connection_change", args=(quote(other.pk),))).content.decode()
    assert "Test connection" not in change


def test_a_test_login_shows_the_user_and_starts_no_session(tenant: Tenant, browser: AdminBrowser) -> None:
    login = saml_login(tenant, protocolBinding=POST)
    fields = fields_of(login.browser.get(begun(browser, login)))
    assert fields["action"] == SIGN_IN
    request = login.request_in(fields["SAMLRequest"])
    answer = login.answer(request, assertion_id="_one")
    response = login.come_back(answer, fields["RelayState"])
    assert b"The test worked" in response.content
    assert b"ada@" not in response.content
    content = shown(browser, login.connection)
    for value in ("248289", "ada@corp.example.test", "Ada Lovelace", "displayName", "&lt;samlp:Response"):
        assert value in content
    assert not User.objects.of(tenant.pk).exists()
    assert not Session.objects.of(tenant.pk).exists()
    # The login transaction is still stored, but the test has ended.
    assert not UsedAssertion.objects.of(tenant.pk).exists()
    assert login.come_back(answer, fields["RelayState"]).status_code == 400


def result_of(browser: AdminBrowser, login: SamlLogin) -> str:
    """Complete a test login. Return the page with its result, as text on one line."""
    fields = fields_of(login.browser.get(begun(browser, login)))
    login.come_back(login.answer(login.request_in(fields["SAMLRequest"])), fields["RelayState"])
    return " ".join(re.sub(r"<[^>]+>", " ", shown(browser, login.connection)).split())


def test_the_result_of_a_test_login_shows_the_user_that_a_login_would_create(tenant: Tenant, browser: AdminBrowser) -> None:
    content = result_of(browser, saml_login(tenant, protocolBinding=POST))
    assert "Successful A login would create the user samlp|corp|248289 with this profile:" in content
    assert "name Ada Lovelace" in content


def test_the_result_of_a_test_login_shows_a_known_user_with_a_link(tenant: Tenant, browser: AdminBrowser) -> None:
    login = saml_login(tenant, protocolBinding=POST)
    user = UserFactory.create(tenant_id=tenant.pk, connection=login.connection, identifier="corp|248289", name="Ada", email="a@b.example")
    assert "A login would log in Ada (a@b.example) with this profile:" in result_of(browser, login)
    assert f'href="{reverse("admin:identity_user_change", args=(quote(user.pk),))}"' in shown(browser, login.connection)


@pytest.mark.parametrize(
    ("options", "is_blocked", "told"),
    [
        (
            {"disable_signup": True},
            False,
            "but a login would fail: The user does not exist yet, and the connection does not allow sign-up.",
        ),
        ({}, True, "but a login would fail: The user samlp|corp|248289 is blocked."),
        ({"set_user_root_attributes": "never_on_login"}, False, "without a profile, because the connection does not use the attributes"),
    ],
)
def test_the_result_of_a_valid_response_says_why_a_login_would_not_store_the_profile(
    tenant: Tenant, browser: AdminBrowser, options: dict[str, Any], is_blocked: bool, told: str
) -> None:
    login = saml_login(tenant, protocolBinding=POST, **options)
    if is_blocked:
        UserFactory.create(tenant_id=tenant.pk, connection=login.connection, identifier="corp|248289", blocked=True)
    content = result_of(browser, login)
    assert told in content
    assert ("with this profile" in content, "Successful" in content) == (False, "fail" not in told)


def test_a_test_login_reports_that_another_user_has_the_email_address(tenant: Tenant, browser: AdminBrowser) -> None:
    login = saml_login(tenant, protocolBinding=POST)
    UserFactory.create(tenant_id=tenant.pk, connection=login.connection, identifier="corp|another", email="Ada@corp.example.test")
    content = result_of(browser, login)
    assert "but a login would fail: Another user of this connection has this e-mail address." in content
    assert "Successful" not in content


def test_the_button_fetches_the_metadata_and_only_a_real_fetch_is_in_the_audit_log(tenant: Tenant, browser: AdminBrowser) -> None:
    with misbehaving_server(lambda _request: reply(200, raw=metadata())) as server:
        login = saml_login(tenant, is_complete=False, metadataUrl=f"http://127.0.0.1:{server.port}/metadata")
        first = browser.post(page(login.connection), {"fetch": "1"}, follow=True).content.decode()
        # The fetch of another process has begun and has not ended.
        ProviderMetadata.objects.of(tenant.pk).update(tried_at=timezone.now() + timedelta(minutes=1))
        second = browser.post(page(login.connection), {"fetch": "1"}, follow=True).content.decode()
    assert "Metadata fetched." in first
    assert "The metadata is being fetched already." in second
    assert len(server.received) == 1
    assert AuditEntry.objects.filter(tenant_id=tenant.pk, act="Fetch metadata").count() == 1


def test_a_failed_fetch_by_the_button_shows_the_reason(tenant: Tenant, browser: AdminBrowser) -> None:
    with misbehaving_server(lambda _request: reply(503, raw=b"")) as server:
        login = saml_login(tenant, is_complete=False, metadataUrl=f"http://127.0.0.1:{server.port}/metadata")
        content = browser.post(page(login.connection), {"fetch": "1"}, follow=True).content.decode()
    assert "The address answered 503." in content
    assert not AuditEntry.objects.filter(tenant_id=tenant.pk, act="Fetch metadata").exists()


def test_the_page_reloads_when_the_administrator_returns_from_the_provider(tenant: Tenant, browser: AdminBrowser) -> None:
    login = saml_login(tenant, protocolBinding=POST)
    begun(browser, login)
    assert "theme/return.js" in shown(browser, login.connection)
    assert "theme/return.js" not in result_of(browser, login)
    assert "theme/return.js" not in shown(browser, login.connection)


def test_a_failed_test_login_explains_what_to_fix(tenant: Tenant, browser: AdminBrowser) -> None:
    login = saml_login(tenant, protocolBinding=POST)
    fields = fields_of(login.browser.get(begun(browser, login)))
    request = login.request_in(fields["SAMLRequest"])
    response = login.come_back(login.answer(request, audience="urn:another"), fields["RelayState"])
    assert b"The test failed" in response.content
    assert "Enter that as audience" in shown(browser, login.connection)


def test_an_unreachable_provider_ends_the_test_with_the_reason(tenant: Tenant, browser: AdminBrowser) -> None:
    options = {"client_id": "tenant", "client_secret": "only-for-a-test", "issuer": "http://127.0.0.1:9"}
    connection = ConnectionFactory.create(tenant_id=tenant.pk, name="down", strategy="oidc", options=options)
    login = SamlLogin(tenant, saml_login(tenant).client, connection)

    assert b"The test failed" in login.browser.get(begun(browser, login)).content

    content = shown(browser, connection)
    assert "The identity provider cannot be reached" in content
    assert "Waiting for the response" not in content


def test_an_ended_or_unknown_test_is_refused(tenant: Tenant, browser: AdminBrowser) -> None:
    login = saml_login(tenant)
    address = begun(browser, login)
    assert login.browser.get(f"{address}x").status_code == 400
    ConnectionTest.objects.of(tenant.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert login.browser.get(address).status_code == 400


def test_a_test_login_over_ws_federation_shows_the_user(tenant: Tenant, browser: AdminBrowser) -> None:
    client = saml_login(tenant).client
    connection = create_connection(
        tenant_id=tenant.pk, name="adfs", strategy="adfs", options={"fedMetadataXml": federation_metadata().decode()}
    )
    login = SamlLogin(tenant, client, connection)
    sent = login.browser.get(begun(browser, login))
    state = sent["Location"].partition("wctx=")[2].partition("&")[0]
    result = Token(realm=login.entity_id).result()
    assert b"The test worked" in login.browser.post("/login/callback", {"wresult": result, "wctx": state}).content
    assert "CORP\\ada" in shown(browser, connection)


def test_a_connection_without_a_provider_cannot_be_tested(tenant: Tenant, browser: AdminBrowser) -> None:
    login = saml_login(tenant, is_complete=False)
    content = browser.post(page(login.connection), {"test": "1"}).content.decode()
    assert "has no sign-in address" in content
    assert not ConnectionTest.objects.of(tenant.pk).exists()


def test_the_sign_in_log_shows_the_refused_message(tenant: Tenant, browser: AdminBrowser) -> None:
    login = saml_login(tenant)
    request, state = login.leave()
    login.come_back(login.answer(request, key=OTHER), state)
    line = SignIn.objects.of(tenant.pk).filter(is_success=False).latest("created_at")
    content = browser.get(reverse("admin:authapi_signin_change", args=(line.pk,))).content.decode()
    assert "<summary>Show the decoded message" in content
    assert "ada@corp.example.test" in content
    assert "(left out)" in content
    RefusedMessage.objects.of(tenant.pk).delete()
    assert "<summary>Show the decoded message" not in browser.get(reverse("admin:authapi_signin_change", args=(line.pk,))).content.decode()


# Expiring certificates.


@pytest.mark.parametrize(
    ("certificates", "warned"),
    [([20], True), ([-1], True), ([60], False), ([20, 60], False)],
)
def test_an_expiring_certificate_causes_a_warning_unless_a_later_certificate_is_configured(
    tenant: Tenant, certificates: list[int], warned: bool
) -> None:
    texts = [key_pair(days=days).text for days in certificates]
    connection = create_connection(
        tenant_id=tenant.pk, name="corp", strategy="samlp", options={"signInEndpoint": SIGN_IN, "signingCert": texts}
    )
    found = ending_certificates(Connection.objects.of(tenant.pk), now=timezone.now(), within=timedelta(days=30))
    assert [ending.connection for ending in found] == ([connection] if warned else [])


def test_the_start_page_shows_the_warning(tenant: Tenant, browser: AdminBrowser) -> None:
    login = saml_login(tenant, signingCert=key_pair(days=5).text)
    content = browser.get(reverse("admin:index")).content.decode()
    assert f"The certificate of the provider of {login.connection}" in content
    assert "Expires in" in shown(browser, login.connection)


# Refusals when options are stored.


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"signInEndpoint": "javascript:alert(1)"}, "signInEndpoint"),
        ({"metadataXml": "<html/>"}, "metadataXml"),
        ({"signingCert": "none"}, "signingCert"),
    ],
)
def test_unusable_options_are_refused_when_they_are_stored(tenant: Tenant, options: dict[str, Any], told: str) -> None:
    with pytest.raises(Invalid) as refused:
        create_connection(tenant_id=tenant.pk, name="corp", strategy="samlp", options=options)
    assert told in str(refused.value.errors)
    connection = create_connection(tenant_id=tenant.pk, name="corp", strategy="samlp", options={"metadataXml": metadata().decode()})
    with pytest.raises(Invalid):
        update_connection(tenant_id=tenant.pk, connection_id=connection.pk, changes={"options": options})
