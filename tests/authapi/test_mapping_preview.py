"""The preview on the page of a connection: sample claims, and the profile that the mapping creates from them."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client as Browser
from django.urls import reverse
from django.utils import timezone

from authapi.models import ConnectionTest
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.id_token import check_subject
from authapi.upstream.saml.claims import TRANSIENT
from authapi.upstream.sample_claims import speaks_assertions
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


def main_part(connection: Connection) -> str:
    if speaks_assertions(connection):
        return "attributes"
    return "document" if connection.strategy in ("oauth2", "github", "facebook") else "id_token"


def preview(browser: Browser, connection: Connection, claims: object, **parts: object) -> Any:
    """Submit the preview form.

    The main field for the strategy, such as the field for the id token, contains `claims`. The other fields contain `parts`.
    """
    sent = {main_part(connection): claims, **parts}
    fields = {name: value if isinstance(value, str) else json.dumps(value) for name, value in sent.items()}
    answer = browser.post(page(connection), {"preview": "1", **fields})
    assert answer.status_code == 200
    return answer


@pytest.mark.parametrize(
    ("strategy", "options", "parts", "subject", "profile"),
    [
        (
            "oidc",
            {"client_id": "c", "attribute_map": MAP},
            {"id_token": {"sub": "1", "first": "Ada", "last": "L."}},
            "1",
            {"name": "Ada L."},
        ),
        ("okta", {"client_id": "c"}, {"id_token": {"sub": "1", "email": "no address", "name": "Ada"}}, "1", {"name": "Ada"}),
        (
            "oauth2",
            OAUTH,
            {"document": {"data": {"id": 7, "mail": "ada@example.test"}}},
            "7",
            {"email": "ada@example.test", "email_verified": False},
        ),
        ("github", {"client_id": "c"}, {"document": {"user": {"id": 7, "name": "Ada"}}}, "7", {"name": "Ada"}),
        ("samlp", {"fieldsMap": {"name": "cn"}}, {"name_id": "x", "attributes": {"cn": ["Ada", "Other"]}}, "x", {"name": "Ada"}),
        ("adfs", {"user_id_attribute": "upn"}, {"attributes": {"upn": ["ada@corp"]}}, "ada@corp", {}),
    ],
)
def test_the_preview_of_sample_claims_shows_the_profile_that_a_login_would_create(
    browser: Browser,
    tenant: Tenant,
    strategy: str,
    options: dict[str, Any],
    parts: dict[str, object],
    subject: str,
    profile: dict[str, Any],
) -> None:
    connection = made(tenant, strategy, **options)
    shown = preview(browser, connection, {}, **parts).context["previewed"]
    assert (shown["subject"], shown["profile"]) == (subject, told(profile))
    assert not User.objects.of(tenant.pk).exists()


def told(profile: dict[str, Any]) -> dict[str, Any]:
    """Return a profile as the page shows it."""
    return {name: ("Yes" if value else "No") if isinstance(value, bool) else value for name, value in profile.items()}


@pytest.mark.parametrize("strategy", ["oidc", "samlp", "adfs", "google-oauth2", "github", "facebook"])
def test_the_initial_sample_claims_of_the_page_are_valid(browser: Browser, tenant: Tenant, strategy: str) -> None:
    options = {"hosted_domains": ["example.com"]} if strategy == "google-oauth2" else {}
    connection = made(tenant, strategy, client_id="c", **options)
    content = browser.get(page(connection)).content.decode()
    shown = browser.post(page(connection), {**posted(content), "preview": "1"}).context["previewed"]
    assert (shown["subject"], shown["profile"]["email"]) == ("248289", "ada@example.com")


def posted(content: str) -> dict[str, str]:
    """Return what a browser without scripts sends for the preview form of a page."""
    form = content.partition('action="#preview-title"')[2].partition("</form>")[0]
    inputs = re.findall(r'<input type="(?:text|hidden)"[^>]* name="([^"]+)"(?: value="([^"]*)")?', form)
    areas = re.findall(r'<textarea name="([^"]+)"[^>]*>\n?([^<]*)</textarea>', form)
    return {name: unescape(text) for name, text in (*inputs, *areas)}


@pytest.mark.parametrize(
    ("strategy", "options", "claims"),
    [
        ("oidc", {"client_id": "c"}, "no json"),
        ("oidc", {"client_id": "c"}, "[]"),
        ("oidc", {"client_id": "c"}, {"email": "ada@example.test"}),
        ("oidc", {"client_id": "c"}, {"sub": 7}),
        ("google-oauth2", {"client_id": "c", "hosted_domains": ["example.com"]}, {"sub": "7"}),
        ("oauth2", OAUTH, {"data": {}}),
        # A login at GitHub reads the answers of API calls. The claims must be inside such answers.
        ("github", {"client_id": "c"}, {"sub": "7", "name": "Ada"}),
    ],
)
def test_sample_claims_with_which_a_login_would_fail_are_refused_at_their_field(
    browser: Browser, tenant: Tenant, strategy: str, options: dict[str, Any], claims: object
) -> None:
    connection = made(tenant, strategy, **options)
    answer = preview(browser, connection, claims)
    assert answer.context["previewed"] is None
    (text,) = answer.context["preview"].errors[main_part(connection)]
    assert text.endswith(".")
    assert text in answer.content.decode()


@pytest.mark.parametrize(
    ("options", "parts", "text"),
    [
        ({"user_id_attribute": "uid"}, {"name_id": "x"}, "The assertion lacks the attribute that identifies users: uid."),
        ({}, {}, "The assertion has no NameID."),
        ({}, {"name_id": "x", "name_id_format": TRANSIENT}, "The NameID is transient"),
    ],
)
def test_an_assertion_that_identifies_no_user_is_refused_at_the_field_of_the_name_id(
    browser: Browser, tenant: Tenant, options: dict[str, Any], parts: dict[str, str], text: str
) -> None:
    answer = preview(browser, made(tenant, "samlp", **options), {}, **parts)
    (found,) = answer.context["preview"].errors["name_id"]
    assert text in found


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        ({"cn": "Ada"}, None),
        ({"cn": 7}, "The attribute “cn” must be a string or a list of strings."),
        ({"cn": ["Ada", {}]}, "list of strings."),
    ],
)
def test_each_attribute_that_is_sent_as_json_must_be_a_text_or_a_list_of_texts(
    browser: Browser, tenant: Tenant, attributes: dict[str, Any], error: str | None
) -> None:
    answer = preview(browser, made(tenant, "samlp", fieldsMap={"name": "cn"}), attributes, name_id="x")
    if error is None:
        assert answer.context["previewed"]["profile"] == {"name": "Ada"}
    else:
        assert error in answer.context["preview"].errors["attributes"][0]


def test_rows_that_cannot_be_read_are_shown_as_they_were_entered(browser: Browser, tenant: Tenant) -> None:
    oidc, saml = made(tenant, "oidc", client_id="c"), create_connection(tenant_id=tenant.pk, name="saml", strategy="samlp")
    answer = browser.post(page(oidc), {"preview": "1", "id_token-name-0": "address", "id_token-value-0": "{open"})
    assert answer.context["preview"].errors["id_token"] == [
        "The value of “address” cannot be read as JSON. If the value is text, put it in quotes."
    ]
    assert posted(answer.content.decode()).items() >= {"id_token-name-0": "address", "id_token-value-0": "{open"}.items()
    answer = browser.post(page(saml), {"preview": "1", "attributes-claim-0": "", "attributes-value-0": "Ada"})
    assert answer.context["preview"].errors["attributes"] == ["Row 1: enter the claim for the value “Ada”."]
    assert posted(answer.content.decode())["attributes-value-0"] == "Ada"


def mapped(browser: Browser, connection: Connection) -> Any:
    return browser.get(reverse("admin:identity_connection_change", args=(quote(connection.pk),))).context["mapped"]


def add_test(connection: Connection, **result: Any) -> None:
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


def add_success(connection: Connection, **sent: Any) -> None:
    add_test(connection, is_success=True, subject="x7", profile={}, sent=sent, left_out=[])


def test_the_form_of_a_connection_previews_the_claims_of_the_last_successful_test(browser: Browser, tenant: Tenant) -> None:
    connection = made(tenant, "samlp", fieldsMap={"name": "cn", "email": ["work", "mail"]})
    elsewhere = made(new_tenant(), "samlp")
    add_success(connection, name_id="x7", name_id_format="", attributes={"cn": ["Ada", "Other"], "mail": ["ada@example.test"]})
    add_test(connection, is_success=False)
    add_success(elsewhere, name_id="x7", attributes={"cn": ["Mallory"]})
    shown = mapped(browser, connection)
    assert shown["sample"].tested_at is not None
    assert (shown["subject"], shown["profile"]) == ("x7", {"name": "Ada", "email": "ada@example.test"})
    ((_, lines),) = shown["claims"]
    assert ("cn", "Ada, Other") in lines
    rows = posted(browser.get(page(connection)).content.decode())
    assert [rows[f"attributes-{column}-1"] for column in ("claim", "value")] == ["cn", "Other"]


@pytest.mark.parametrize(
    ("strategy", "result"),
    [
        ("okta", {"subject": "x7", "profile": {"name": "Ada"}, "attributes": {"sub": ["x7"], "email_verified": ["true"]}}),
        ("samlp", {"subject": "x7", "profile": {}, "attributes": {"cn": ["Ada"]}}),
        # The connection had another protocol during the test.
        ("samlp", {"subject": "x7", "profile": {}, "sent": {"id_token": {"sub": "x7"}}}),
        ("okta", {"subject": "x7"}),
    ],
    ids=["OpenID", "SAML", "another protocol", "no claims"],
)
def test_the_pages_recommend_another_test_if_the_last_test_stored_no_claims(
    browser: Browser, tenant: Tenant, strategy: str, result: dict[str, Any]
) -> None:
    connection = made(tenant, strategy, client_id="c", domain="d.example.test")
    add_test(connection, is_success=True, **result)
    shown = mapped(browser, connection)
    assert (shown["sample"].tested_at, shown["subject"]) == (None, "248289")
    assert "Test the connection again to see the claims of your provider" in one_line(browser.get(change_page(connection)))
    assert "Test the connection again to fill in the claims of your provider" in one_line(browser.get(page(connection)))


def change_page(connection: Connection) -> str:
    return reverse("admin:identity_connection_change", args=(quote(connection.pk),))


def one_line(answer: Any) -> str:
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


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
    assert (shown["sample"].tested_at, shown["subject"]) == (None, "248289")
    assert shown["profile"].items() >= profile.items()


def test_the_form_states_why_a_login_with_the_claims_would_fail(browser: Browser, tenant: Tenant) -> None:
    connection = made(tenant, "oauth2", **{**OAUTH, "fieldsMap": {"user_id": "data[0].id"}})
    shown = mapped(browser, connection)
    assert shown["problem"] == "The profile has no subject. Map user_id to the member with the subject."
    assert "profile" not in shown
    content = browser.get(reverse("admin:identity_connection_change", args=(quote(connection.pk),))).content.decode()
    assert "With these claims, a login would fail: The profile has no subject." in content


def test_the_connection_of_another_tenant_has_no_preview(browser: Browser) -> None:
    connection = made(new_tenant(), "oidc", client_id="c")
    assert browser.post(page(connection), {"preview": "1", "id_token": "{}"}).status_code == 404


def test_a_preview_without_a_claim_that_the_map_reads_is_incomplete(browser: Browser, tenant: Tenant) -> None:
    connection = made(tenant, "samlp", user_id_attribute="uid")
    sent = {"name_id": "x7", "name_id_format": "", "attributes": {"cn": ["Ada"]}}
    add_test(connection, is_success=True, subject="x7", profile={}, sent=sent, left_out=["uid", "other"])
    content = one_line(browser.get(change_page(connection)))
    assert "The preview is incomplete, because the test did not store claims that the connection reads: uid." in content
    assert "a login would fail" not in content
    assert "because they are secrets, too long, too many, or impossible to store: uid, other." in content
    assert "Enter the claims that the connection reads and that the test did not store: uid." in one_line(browser.get(page(connection)))


def test_a_preview_uses_the_claims_of_the_test_that_filled_the_page(browser: Browser, tenant: Tenant) -> None:
    connection = made(tenant, "samlp", fieldsMap={"name": "cn", "nickname": "nick"})
    # No row of the form can represent the list, so the form does not submit the list.
    add_success(connection, name_id="x7", name_id_format="", attributes={"cn": ["Ada"] * 30, "nick": ["ada"]})
    sent = {**posted(browser.get(page(connection)).content.decode()), "preview": "1"}
    add_success(connection, name_id="x8", name_id_format="", attributes={"cn": ["Eve"] * 30, "nick": ["eve"]})
    answer = browser.post(page(connection), sent)
    assert answer.context["previewed"]["profile"] == {"name": "Ada", "nickname": "ada"}
    assert posted(answer.content.decode())["sample"] == sent["sample"]


def test_a_preview_with_the_claims_of_a_missing_test_is_refused(browser: Browser, tenant: Tenant) -> None:
    connection, elsewhere = made(tenant, "samlp"), made(new_tenant(), "samlp")
    other = create_connection(tenant_id=tenant.pk, name="other", strategy="samlp")
    for each in (elsewhere, other):
        add_success(each, name_id="mallory", attributes={})
    ids = [str(ConnectionTest.objects.of(each.tenant_id).filter(connection=each).get().pk) for each in (elsewhere, other)]
    for test_id in (*ids, "999999999", "no number", "9" * 30):
        answer = browser.post(page(connection), {"preview": "1", "sample": test_id, "name_id": "x"})
        assert answer.context["previewed"] is None
        assert "mallory" not in one_line(answer)
        assert "The test with these claims no longer exists." in one_line(answer)


def test_userinfo_claims_of_another_user_are_refused_at_their_field(browser: Browser, tenant: Tenant) -> None:
    connection = made(tenant, "oidc", client_id="c")
    answer = preview(browser, connection, {"sub": "1"}, userinfo={"sub": "2"})
    assert list(answer.context["preview"].errors) == ["userinfo"]
    assert answer.context["previewed"] is None
    whole = {"sub": "1", "email": "ada@example.test", "name": "Ada"}
    assert preview(browser, connection, whole, userinfo={"sub": "2"}).context["previewed"]["subject"] == "1"


def test_the_preview_states_that_a_login_does_not_read_the_userinfo_endpoint(browser: Browser, tenant: Tenant) -> None:
    templates = {"email": "${context.tokenset.mail}", "nickname": "${context.userinfo.nick}"}
    connection = made(tenant, "oidc", client_id="c", attribute_map={"mapping_mode": "use_map", "attributes": templates})
    note = "A login does not read the userinfo endpoint, because the ID token has an email and a name."
    whole, userinfo = {"sub": "1", "email": "ada@example.test", "name": "Ada"}, {"sub": "1", "nick": "ada"}
    assert note in one_line(preview(browser, connection, whole, userinfo=userinfo))
    assert note not in one_line(preview(browser, connection, {"sub": "1"}, userinfo=userinfo))
    assert note not in one_line(preview(browser, connection, whole))
    assert note not in one_line(browser.get(change_page(connection)))
    named = {**templates, "email": "${context.tokenset.email}", "name": "${context.tokenset.name}"}
    connection.options["attribute_map"]["attributes"] = named
    connection.save()
    assert note in one_line(browser.get(change_page(connection)))


def test_mapped_claims_are_not_shown_as_claims_of_the_provider(browser: Browser, tenant: Tenant) -> None:
    connection = made(tenant, "github", client_id="c")
    add_success(connection, claims={"sub": "7", "name": "Ada"})
    content = one_line(browser.get(page(connection)))
    assert "<summary>Claims after the mapping</summary>" in content
    assert "Claims of the provider</summary>" not in content


@pytest.mark.parametrize(
    ("subject", "text"),
    [(7, "must be a string of 1 to 255 characters."), ("a\x00", "has characters that cannot be stored."), ("\ud800", "cannot be stored.")],
)
def test_a_refused_subject_has_a_reason(subject: object, text: str) -> None:
    with pytest.raises(UpstreamFailed) as refused:
        check_subject({"sub": subject})
    assert text in refused.value.detail
