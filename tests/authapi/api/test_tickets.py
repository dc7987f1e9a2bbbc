"""Links that applications request and hand to users: created in the management interface, used on the pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import time_machine

from authapi.accounts.handed_tickets import is_result_address
from authapi.models import AccountTicket, AdministrativeLine
from identity.models import EmailTicket, Tenant, User
from identity.services.users import update_user
from tests.authapi.accounts.logging_in import attempt, outcome
from tests.authapi.browser import Browser, Page
from tests.factories.admin import new_tenant
from tests.factories.identity import make_connection
from tests.factories.organizations import make_organization
from tests.factories.sign_in import PASSWORD, people, person, web_client
from tests.management import Management

RESULT = "https://shop.example.test/done?from=mail"
NEW = "Quite-Another-Horse-2"
CHANGE, VERIFY = "tickets/password-change", "tickets/email-verification"


@pytest.fixture
def grace(tenant: Tenant) -> User:
    return person(people(tenant), email="grace@example.test", email_verified=False)


def opened(tenant: Tenant, link: str) -> Page:
    parts = urlsplit(link)
    assert parts.netloc == f"{tenant.pk}.example.test", link
    return Browser(tenant).get(parts.path, dict(parse_qsl(parts.query)))


def sent(tenant: Tenant, link: str, **fields: str) -> Page:
    parts = urlsplit(link)
    return Browser(tenant).post(parts.path, {**dict(parse_qsl(parts.query)), **fields})


def change(tenant: Tenant, link: str, password: str = NEW) -> Page:
    return sent(tenant, link, password=password, repeated=password)


def made(api: Management, path: str, **body: Any) -> str:
    answer = api.post(path, body)
    assert (answer.status, list(answer.json)) == (201, ["ticket"]), answer.json
    return str(answer.json["ticket"])


# --- A new password -----------------------------------------------------------------------------------------------------------


def test_a_link_sets_a_password_once_and_redirects_to_the_result_address(api: Management, tenant: Tenant, grace: User) -> None:
    link = made(api, CHANGE, user_id=grace.user_id, result_url=RESULT, includeEmailInRedirect=True)
    page = opened(tenant, link)
    assert "form-action 'self' https:" in page.headers["content-security-policy"]
    done = change(tenant, link)
    assert done.status == 303
    assert done.headers["referrer-policy"] == "no-referrer"
    assert done.location.startswith("https://shop.example.test/done?from=mail&")
    assert done.answer == {
        "from": "mail",
        "email": "grace@example.test",
        "success": "true",
        "code": "success",
        "message": "You can now login to the application with the new password.",
    }
    assert outcome(attempt(grace.connection, "grace@example.test", NEW)) == grace
    for again in (change(tenant, link, "Third-Horse-9-Now"), opened(tenant, link)):
        assert again.answer == {
            "from": "mail",
            "email": "grace@example.test",
            "success": "false",
            "message": "This URL can be used only once",
        }
    grace.refresh_from_db()
    # The link does not verify the email address: the application gets the link, and may have given it to another person.
    assert not grace.email_verified


def test_a_link_verifies_the_address_if_the_application_requests_it(api: Management, tenant: Tenant, grace: User) -> None:
    link = made(api, CHANGE, email="GRACE@example.test", connection_id=grace.connection_id, mark_email_as_verified=True)
    assert "Password changed" in change(tenant, link).text
    grace.refresh_from_db()
    assert grace.email_verified


def test_a_password_chosen_by_the_application_takes_effect_when_the_user_confirms_it(api: Management, tenant: Tenant, grace: User) -> None:
    link = made(api, CHANGE, user_id=grace.user_id, new_password=NEW)
    page = opened(tenant, link)
    assert "Confirm the new password" in page.text
    assert NEW not in page.text
    assert outcome(attempt(grace.connection, "grace@example.test", PASSWORD)) == grace
    # Another password in the form is ignored.
    assert change(tenant, link, "Third-Horse-9-Now").status == 200
    assert outcome(attempt(grace.connection, "grace@example.test", NEW)) == grace
    for model in (AccountTicket, AdministrativeLine):
        assert NEW not in str(list(model.objects.of(tenant.pk).values()))
    weak = api.post(CHANGE, {"user_id": grace.user_id, "new_password": "short"})
    assert (weak.status, "short" in weak.json["message"].split("'")[0]) == (400, False)


def test_a_link_expires_after_its_requested_time_or_after_five_days_by_default(api: Management, tenant: Tenant, grace: User) -> None:
    for ttl, alive, ended in ((None, timedelta(days=4, hours=23), timedelta(days=5, hours=1)), (60, timedelta(0), timedelta(seconds=61))):
        body = {"user_id": grace.user_id, "result_url": RESULT, **({} if ttl is None else {"ttl_sec": ttl})}
        for path in (CHANGE, VERIFY):
            link = made(api, path, **body)
            with time_machine.travel(datetime.now(UTC) + alive, tick=False):
                assert opened(tenant, link).status == 200
            with time_machine.travel(datetime.now(UTC) + ended, tick=False):
                assert opened(tenant, link).answer["message"] == "Access expired."


def test_the_page_redirects_to_the_login_of_the_client_for_the_organization(api: Management, tenant: Tenant, grace: User) -> None:
    client, _ = web_client(tenant, settings={"initiate_login_uri": "https://app.example.test/login"})
    acme = make_organization(tenant, "acme")
    named = {"user_id": grace.user_id, "client_id": client.client_id, "organization_id": acme.pk}
    issuer = f"http%3A%2F%2F{tenant.pk}.example.test%2F"
    address = f"https://app.example.test/login?iss={issuer}&organization_id={acme.pk}&organization_name=acme"
    assert f'href="{address}"' in change(tenant, made(api, CHANGE, **named)).text
    assert f'href="{address}"' in sent(tenant, made(api, VERIFY, **named)).text


# --- A verified address ---------------------------------------------------------------------------------------------------------


def test_a_link_verifies_an_address_once_after_the_user_has_confirmed_it(api: Management, tenant: Tenant, grace: User) -> None:
    link = made(api, VERIFY, user_id=grace.user_id, result_url=RESULT)
    page = opened(tenant, link)
    assert (page.status, "grace@example.test" in page.text) == (200, True)
    grace.refresh_from_db()
    assert not grace.email_verified
    assert sent(tenant, link).answer == {
        "from": "mail",
        "success": "true",
        "code": "success",
        "message": "Your email was verified. You can continue using the application.",
    }
    grace.refresh_from_db()
    assert grace.email_verified
    assert sent(tenant, link).answer["success"] == "false"


def test_a_link_for_a_former_address_verifies_nothing(api: Management, tenant: Tenant, grace: User) -> None:
    link = made(api, VERIFY, user_id=grace.user_id)
    update_user(tenant_id=tenant.pk, user_id=grace.user_id, changes={"email": "other@example.test"})
    assert sent(tenant, link).status == 410
    grace.refresh_from_db()
    assert not grace.email_verified


# --- Refusals ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "//evil.test/",
        "/path",
        "https://",
        "https:evil.test",
        "https://user:secret@shop.example.test/",
        "https://shop.example.test/\r\nSet-Cookie: a=b",
        "https://shop.example.test\\@evil.test/",
        "https://[",
        f"https://shop.example.test/{'x' * 2048}",
    ],
)
def test_a_result_address_is_an_absolute_https_address(api: Management, tenant: Tenant, grace: User, address: str) -> None:
    for path in (CHANGE, VERIFY):
        answer = api.post(path, {"user_id": grace.user_id, "result_url": address})
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), address
    assert not AccountTicket.objects.of(tenant.pk).exists()
    assert not EmailTicket.objects.of(tenant.pk).exists()


def test_a_result_address_may_use_plain_http_only_if_the_service_runs_without_tls(settings: Any) -> None:
    assert is_result_address("http://localhost:3000/done")
    settings.INSECURE_HTTP = False
    assert not is_result_address("http://localhost:3000/done")
    assert is_result_address(RESULT)


def test_a_link_redirects_only_to_the_result_address_of_its_row(api: Management, tenant: Tenant, grace: User) -> None:
    link = made(api, CHANGE, user_id=grace.user_id)
    done = sent(tenant, link, password=NEW, repeated=NEW, result_url="https://evil.test/", redirect="https://evil.test/")
    assert (done.status, "evil.test" in done.text) == (200, False)


def test_an_invalid_request_is_refused(api: Management, tenant: Tenant, grace: User) -> None:
    social = make_connection(tenant_id=tenant.pk, strategy="google-oauth2", name="google")
    stranger = {"user_id": "auth0|nobody"}
    named = {"user_id": grace.user_id}
    by_address = {"email": "grace@example.test", "connection_id": grace.connection_id}
    acme = make_organization(tenant, "acme").pk
    cases: list[tuple[str, dict[str, Any], int, str | None]] = [
        (CHANGE, {}, 400, "invalid_body"),
        (CHANGE, {"email": "grace@example.test"}, 400, "invalid_body"),
        (CHANGE, {"connection_id": grace.connection_id}, 400, "invalid_body"),
        (CHANGE, {**named, **by_address}, 400, "invalid_body"),
        (CHANGE, {**by_address, "connection_id": social.pk}, 404, "inexistent_user"),
        (CHANGE, {**by_address, "identity": {"user_id": "x", "provider": "auth0"}}, 400, "invalid_body"),
        (CHANGE, {**named, "identity": {"user_id": "x", "provider": "auth0"}}, 400, "operation_not_supported"),
        (CHANGE, {**named, "result_url": RESULT, "organization_id": acme}, 400, "invalid_body"),
        (VERIFY, {}, 400, "invalid_body"),
        (VERIFY, {**named, "result_url": RESULT, "organization_id": acme}, 400, "invalid_body"),
        (VERIFY, {**named, "result_url": RESULT, "client_id": "x"}, 400, "invalid_body"),
        (VERIFY, {**named, "identity": {"user_id": "x", "provider": "google-oauth2"}}, 404, None),
        *[
            each
            for path in (CHANGE, VERIFY)
            for each in (
                (path, stranger, 404, "inexistent_user"),
                (path, {**named, "client_id": "x" * 32}, 404, "inexistent_client"),
                (path, {**named, "organization_id": "org_0123456789abcdef"}, 404, None),
                (path, {**named, "ttl_sec": -1}, 400, "invalid_body"),
                (path, {**named, "ttl_sec": 2_592_001}, 400, "invalid_body"),
                (path, {**named, "more": 1}, 400, "invalid_body"),
            )
        ],
    ]
    for path, body, status, code in cases:
        answer = api.post(path, body)
        assert (answer.status, answer.json.get("errorCode")) == (status, code), (path, body, answer.json)


def test_the_primary_identity_can_be_named_in_each_accepted_form(api: Management, grace: User) -> None:
    for provider in ("auth0", grace.provider):
        for user_id in (grace.user_id, grace.identifier):
            link = made(api, CHANGE, user_id=grace.user_id, identity={"provider": provider, "user_id": user_id})
            assert "/u/reset-password?ticket=" in link, (provider, user_id)


def test_creating_a_ticket_requires_the_scope_for_tickets(tenant: Tenant, grace: User) -> None:
    weak, fit = Management(tenant, scope="update:users"), Management(tenant, scope="create:user_tickets")
    for path in (CHANGE, VERIFY):
        assert weak.post(path, {"user_id": grace.user_id}).status == 403
        assert fit.post(path, {"user_id": grace.user_id}).status == 201


def test_users_and_links_of_another_tenant_are_unknown(api: Management, tenant: Tenant, grace: User) -> None:
    other = new_tenant()
    thief = Management(other)
    for path in (CHANGE, VERIFY):
        assert thief.post(path, {"user_id": grace.user_id}).json["errorCode"] == "inexistent_user"
        parts = urlsplit(made(api, path, user_id=grace.user_id))
        assert Browser(other).get(parts.path, dict(parse_qsl(parts.query))).status == 404


def test_links_are_not_logged(api: Management, tenant: Tenant, grace: User) -> None:
    for path in (CHANGE, VERIFY):
        secret = dict(parse_qsl(urlsplit(made(api, path, user_id=grace.user_id)).query))["ticket"]
        assert secret not in str(list(AdministrativeLine.objects.of(tenant.pk).values()))
        assert secret not in str(list(AccountTicket.objects.of(tenant.pk).values()))
