"""The preview on the page of a connection: sample claims, and the profile that the mapping creates from them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client as Browser
from django.urls import reverse
from django.utils import timezone

from authapi.models import ConnectionTest
from foundation.secrets.random_secrets import new_secret
from identity.models import Connection, Tenant, User
from identity.services.connections import create_connection
from tests.factories.admin import browser_of, new_staff, new_tenant

MAP = {"mapping_mode": "use_map", "attributes": {"name": "${context.tokenset.first} ${context.tokenset.last}"}}
OAUTH = {
    "client_id": "c",
    "authorizationURL": "https://idp.example.test/a",
    "tokenURL": "https://idp.example.test/t",
    "userInfoURL": "https://idp.example.test/me",
    "fieldsMap": {"user_id": "data.id", "email": "data.mail"},
}


@pytest.fixture
def browser(tenant: Tenant) -> Browser:
    return browser_of(new_staff(tenant))


def made(tenant: Tenant, strategy: str, **options: Any) -> Connection:
    return create_connection(tenant_id=tenant.pk, name="corp", strategy=strategy, options=options)


def page(connection: Connection) -> str:
    return reverse("admin:identity_connection_provider", args=(quote(connection.pk),))


def preview(browser: Browser, connection: Connection, claims: object) -> Any:
    answer = browser.post(page(connection), {"preview": "1", "claims": claims if isinstance(claims, str) else json.dumps(claims)})
    assert answer.status_code == 200
    return answer


@pytest.mark.parametrize(
    ("strategy", "options", "claims", "subject", "profile"),
    [
        ("oidc", {"client_id": "c", "attribute_map": MAP}, {"sub": "1", "first": "Ada", "last": "L."}, "1", {"name": "Ada L."}),
        ("okta", {"client_id": "c"}, {"sub": "1", "email": "no address", "name": "Ada"}, "1", {"name": "Ada"}),
        ("oauth2", OAUTH, {"data": {"id": 7, "mail": "ada@example.test"}}, "7", {"email": "ada@example.test", "email_verified": False}),
        ("samlp", {"fieldsMap": {"name": "cn"}}, {"NameID": "x", "cn": ["Ada", "Other"]}, "x", {"name": "Ada"}),
        ("adfs", {"user_id_attribute": "upn"}, {"upn": "ada@corp"}, "ada@corp", {}),
    ],
)
def test_the_preview_shows_the_profile_that_a_login_with_the_sample_claims_would_create(
    browser: Browser, tenant: Tenant, strategy: str, options: dict[str, Any], claims: object, subject: str, profile: dict[str, Any]
) -> None:
    connection = made(tenant, strategy, **options)
    shown = preview(browser, connection, claims).context["previewed"]
    assert (shown["subject"], shown["profile"]) == (subject, profile)
    assert not User.objects.of(tenant.pk).exists()


@pytest.mark.parametrize("strategy", ["oidc", "samlp", "adfs", "google-oauth2"])
def test_the_initial_sample_claims_of_the_page_are_valid(browser: Browser, tenant: Tenant, strategy: str) -> None:
    connection = made(tenant, strategy, client_id="c")
    sample = browser.get(page(connection)).context["preview"]["claims"].value()
    shown = preview(browser, connection, sample).context["previewed"]
    assert (shown["subject"], shown["profile"]["email"]) == ("248289", "ada@example.com")


@pytest.mark.parametrize(
    ("strategy", "options", "claims"),
    [
        ("oidc", {"client_id": "c"}, "no json"),
        ("oidc", {"client_id": "c"}, "[]"),
        ("oidc", {"client_id": "c"}, {"email": "ada@example.test"}),
        ("oauth2", OAUTH, {"data": {}}),
        ("samlp", {"user_id_attribute": "uid"}, {"NameID": "x"}),
    ],
)
def test_sample_claims_that_would_fail_in_a_login_are_refused_at_the_field(
    browser: Browser, tenant: Tenant, strategy: str, options: dict[str, Any], claims: object
) -> None:
    answer = preview(browser, made(tenant, strategy, **options), claims)
    assert answer.context["previewed"] is None
    (text,) = answer.context["preview"].errors["claims"]
    assert text.endswith(".")
    assert text in answer.content.decode()


def mapped(browser: Browser, connection: Connection) -> Any:
    return browser.get(reverse("admin:identity_connection_change", args=(quote(connection.pk),))).context["mapped"]


def add_test(connection: Connection, *, is_success: bool, **attributes: list[str]) -> None:
    result = {"is_success": is_success, "subject": "x7", "profile": {}, "attributes": attributes} if is_success else {"is_success": False}
    row = ConnectionTest(
        tenant_id=connection.tenant_id,
        connection=connection,
        digest=new_secret()[:43],
        request_id="r",
        callback="https://example.test",
        expires_at=timezone.now(),
        result=result,
    )
    row.save(force_insert=True)


def test_the_form_of_a_connection_previews_the_claims_of_the_last_successful_test(browser: Browser, tenant: Tenant) -> None:
    connection = made(tenant, "samlp", fieldsMap={"name": "cn", "email": ["work", "mail"]})
    elsewhere = made(new_tenant(), "samlp")
    add_test(connection, is_success=True, cn=["Ada", "Other"], mail=["ada@example.test"])
    add_test(connection, is_success=False)
    add_test(elsewhere, is_success=True, cn=["Mallory"])
    shown = mapped(browser, connection)
    assert shown["tested_at"] is not None
    assert (shown["subject"], shown["profile"]) == ("x7", {"name": "Ada", "email": "ada@example.test"})
    assert ("cn", "Ada, Other") in shown["claims"]
    assert '"cn": [' in browser.get(page(connection)).context["preview"]["claims"].value()


@pytest.mark.parametrize(
    ("strategy", "options", "profile"),
    [
        ("oauth2", OAUTH, {"email": "ada@example.com", "email_verified": "No", "name": "Ada Lovelace"}),
        (
            "samlp",
            {"fieldsMap": {"name": "cn", "nickname": ["nick"]}},
            {"name": "Ada Lovelace", "nickname": "ada", "email": "ada@example.com"},
        ),
        ("okta", {"client_id": "c", "domain": "d.example.test", "attribute_map": MAP}, {"name": "first last"}),
    ],
)
def test_sample_claims_have_a_value_for_each_mapped_claim(
    browser: Browser, tenant: Tenant, strategy: str, options: dict[str, Any], profile: dict[str, str]
) -> None:
    shown = mapped(browser, made(tenant, strategy, **options))
    assert (shown["tested_at"], shown["subject"]) == (None, "248289")
    assert shown["profile"].items() >= profile.items()


def test_the_form_states_why_a_login_with_the_claims_would_fail(browser: Browser, tenant: Tenant) -> None:
    connection = made(tenant, "oauth2", **{**OAUTH, "fieldsMap": {"user_id": "data[0].id"}})
    shown = mapped(browser, connection)
    assert shown["problem"] == "The profile has no subject. Map user_id to the member that has it."
    assert "profile" not in shown
    content = browser.get(reverse("admin:identity_connection_change", args=(quote(connection.pk),))).content.decode()
    assert "With these claims, a login would fail: The profile has no subject." in content


def test_the_connection_of_another_tenant_has_no_preview(browser: Browser) -> None:
    connection = made(new_tenant(), "oidc", client_id="c")
    assert browser.post(page(connection), {"preview": "1", "claims": "{}"}).status_code == 404
