"""`/activate`: the code, the login, the question whether to allow the device, and attackers with their own codes or forms (RFC 8628, 5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from authapi.edge.buckets import Bucket
from authapi.models import Consent, DeviceGrant, LoginTransaction
from authapi.services.api_resources import create_api_resource
from authapi.services.clients import update_client
from identity.models import Tenant
from identity.services.tenants import create_tenant
from identity.services.users import update_user
from tests.authapi.asgi_client import ask_token
from tests.authapi.browser import Browser
from tests.authapi.forging import decoded
from tests.authapi.hosted_html import Document
from tests.authapi.memory import forget_all
from tests.authapi.protocols.device.conftest import Television, set_form, television
from tests.factories.sign_in import PASSWORD, person


def value_of(page: Any) -> str:
    return next(one.attributes["value"] for one in Document(page.body.decode()).elements if one.attributes.get("name") == "user_code")


def test_a_url_with_a_code_only_fills_in_the_field(tv: Television) -> None:
    code = tv.begin()
    page = tv.browser.get("/activate", {"user_code": code.lower()})
    assert (page.status, value_of(page)) == (200, code)
    assert "another person has sent" in page.text
    assert not LoginTransaction.objects.of(tv.tenant.pk).exists()
    assert "location" not in page.headers


@pytest.mark.parametrize("typed", ["<script>", "call 0800 now", "A" * 200])
def test_a_url_cannot_put_other_text_into_the_field(tv: Television, typed: str) -> None:
    assert value_of(tv.browser.get("/activate", {"user_code": typed})) == ""


def test_the_question_names_the_application_and_the_place_of_the_device(tv: Television, settings: Any) -> None:
    settings.COUNTRY_HEADER = "CF-IPCountry"
    code = tv.begin(headers={"CF-IPCountry": "AT"})
    page = tv.ask()
    for text in ("Television", "Television/2.1", "198.51.100.7, country AT", code, "See your profile", "ada@example.test"):
        assert text in page.text
    assert tv.browser.submit(page, answer="allow").location.endswith("/activate/done")
    assert "You can go back to your device" in tv.browser.get("/activate/done").text


def test_text_that_a_device_sends_about_itself_is_escaped(tv: Television) -> None:
    tv.begin(headers={"User-Agent": "<b>Bank</b>" + "x" * 300})
    assert "&lt;b&gt;Bank&lt;/b&gt;" in tv.ask().body.decode()
    assert "x" * 200 not in tv.ask().text


def test_a_user_is_asked_each_time_even_for_an_application_of_the_tenant(tv: Television) -> None:
    tv.begin()
    tv.allow()
    assert Consent.objects.of(tv.tenant.pk).exists()
    tv.begin()
    page = tv.enter(tv.codes["user_code"])
    assert page.location.startswith("/u/consent")
    assert tv.error() == (403, "authorization_pending")


def test_another_site_cannot_submit_a_code(tv: Television) -> None:
    code = tv.begin()
    page = tv.browser.get("/activate", {"user_code": code})
    foreign = tv.browser.post("/activate", {**page.fields(), "user_code": code}, Origin="https://evil.example")
    assert (foreign.status, "location" in foreign.headers) == (400, False)
    forged = tv.browser.post("/activate", {"user_code": code}, Origin=f"http://{tv.browser.host}")
    assert (forged.status, value_of(forged)) == (400, code)
    assert not LoginTransaction.objects.of(tv.tenant.pk).exists()


def test_a_form_of_another_browser_cannot_submit_a_code(tv: Television) -> None:
    code = tv.begin()
    page = tv.browser.get("/activate")
    other = Browser(tv.tenant)
    other.get("/activate")
    assert other.post("/activate", {**page.fields(), "user_code": code}).status == 400


def test_another_browser_cannot_answer_a_question(tv: Television) -> None:
    tv.begin()
    page = tv.ask()
    victim = Browser(tv.tenant)
    victim.get("/activate")
    answer = victim.submit(page, answer="allow")
    assert (answer.status, "location" in answer.headers) == (400, False)
    assert tv.error() == (403, "authorization_pending")


def test_another_user_cannot_answer_the_question_of_a_user(tv: Television) -> None:
    tv.begin()
    page = tv.ask()
    other = person(tv.connection, email="eve@example.test", name="Eve")
    again = tv.browser.get("/activate")
    assert again.status == 200
    asked = tv.browser.get("/authorize", {"client_id": tv.client.client_id})
    del asked
    fields = {**page.fields(), "user": other.user_id}
    shown = tv.browser.post("/u/consent", {**fields, "answer": "allow"}, Origin=f"http://{tv.browser.host}")
    assert shown.status == 200
    assert tv.error() == (403, "authorization_pending")


def test_only_the_first_of_two_browsers_can_answer_the_question(tv: Television) -> None:
    tv.begin()
    first = tv.ask()
    elsewhere = Television(tv.tenant, tv.client, tv.secret, tv.connection, tv.user, Browser(tv.tenant), tv.codes)
    person(tv.connection, email="eve@example.test", name="Eve")
    page = elsewhere.enter(tv.codes["user_code"])
    second = elsewhere.browser.follow(
        elsewhere.browser.submit(elsewhere.browser.follow(page), username="eve@example.test", password=PASSWORD)
    )
    assert tv.browser.submit(first, answer="allow").location.endswith("/activate/done")
    refused = elsewhere.browser.submit(second, answer="allow")
    assert refused.status == 400
    assert "This code has already been used" in refused.text
    assert elsewhere.browser.submit(second, answer="deny").status == 400
    assert tv.row.user_id == tv.user.pk
    assert tv.poll().status == 200


def test_pressing_a_button_again_or_going_back_changes_no_answer(tv: Television) -> None:
    tv.begin()
    page = tv.ask()
    assert tv.browser.submit(page, answer="allow").location.endswith("/activate/done")
    assert tv.browser.submit(page, answer="allow").location.endswith("/activate/done")
    assert tv.browser.get("/u/consent", {"state": page.fields()["state"]}).location.endswith("/activate/done")
    assert tv.browser.submit(page, answer="deny").location.endswith("/activate/done")
    assert tv.poll().status == 200


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda tv: tv.begin() and tv.allow(), "This code has already been used"),
        (lambda tv: tv.begin() and tv.expire(), "This code has expired"),
        (lambda tv: tv.begin() and tv.codes.update(user_code="BBBB-BBBB"), "No device has this code"),
    ],
    ids=["used", "expired", "unknown"],
)
def test_an_unusable_code_is_reported_at_its_field(tv: Television, make: Any, words: str) -> None:
    make(tv)
    page = Browser(tv.tenant)
    shown = tv.enter(tv.codes["user_code"], page)
    assert (shown.status, words in shown.text) == (400, True)
    assert 'aria-invalid="true"' in shown.body.decode()


def test_a_code_that_expires_while_the_question_is_open_is_reported(tv: Television) -> None:
    tv.begin()
    page = tv.ask()
    tv.expire()
    answer = tv.browser.submit(page, answer="allow")
    assert (answer.status, "This code has expired" in answer.text) == (400, True)
    assert tv.row.status == DeviceGrant.AUTHORIZATION_PENDING


def test_the_code_of_another_tenant_is_unknown(tv: Television) -> None:
    name = f"{tv.tenant.pk}-b"
    elsewhere = television(create_tenant(tenant_id=name, name=name, host=f"{name}.example.test"))
    assert "No device has this code" in tv.enter(elsewhere.begin()).text


@pytest.mark.parametrize("few", ["USER_CODES_OF_PLACE", "USER_CODES_OF_BROWSER", "USER_CODES_OF_STRANGERS"])
def test_wrong_codes_are_limited_per_ip_address_per_browser_and_in_total(tv: Television, monkeypatch: pytest.MonkeyPatch, few: str) -> None:
    monkeypatch.setattr(f"authapi.protocols.device.guesses.{few}", Bucket(f"few_{few}_{tv.tenant.pk}", 2, 3600.0))
    code = tv.begin()
    assert [tv.enter("BBBB-BBBB").status for _ in range(3)] == [400, 400, 429]
    # The right code is refused after too many wrong codes.
    refused = tv.enter(code)
    assert (refused.status, refused.headers["x-ratelimit-remaining"]) == (429, "0")
    other = Browser(tv.tenant, address="192.0.2.77")
    assert tv.enter(code, other).status == (429 if few == "USER_CODES_OF_STRANGERS" else 303)
    assert tv.lines() == ["fdeac", "fdeac"]


def test_wrong_codes_of_other_browsers_cannot_block_a_known_browser(tv: Television, monkeypatch: pytest.MonkeyPatch) -> None:
    tv.begin()
    tv.allow()
    code = tv.begin()
    monkeypatch.setattr("authapi.protocols.device.guesses.USER_CODES_OF_STRANGERS", Bucket(f"few_{tv.tenant.pk}", 1, 3600.0))
    stranger = Browser(tv.tenant, address="192.0.2.66")
    assert [tv.enter("BBBB-BBBB", stranger).status for _ in range(2)] == [400, 429]
    assert tv.enter(code).status == 303


def test_an_incomplete_code_does_not_count_as_a_guess(tv: Television) -> None:
    assert [tv.enter(typed).status for typed in ("", "BBB", "-")] == [400, 400, 400]
    assert tv.lines() == []


def test_a_client_that_was_changed_during_the_login_is_refused(tv: Television) -> None:
    code = tv.begin()
    update_client(tenant_id=tv.tenant.pk, client_id=tv.client.client_id, changes={"grant_types": ["refresh_token"]})
    forget_all()
    assert "No device has this code" in tv.enter(code).text


def test_a_blocked_user_cannot_allow_a_device(tv: Television) -> None:
    tv.begin()
    page = tv.ask()
    update_user(tenant_id=tv.tenant.pk, user_id=tv.user.user_id, changes={"blocked": True})
    assert tv.browser.submit(page, answer="allow").location.startswith("/u/login")
    assert tv.error() == (403, "authorization_pending")


def test_the_pages_cannot_be_framed_and_their_forms_are_sent_only_to_this_host(tv: Television) -> None:
    tv.begin()
    for page in (tv.browser.get("/activate"), tv.ask()):
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert "https:" not in page.headers["content-security-policy"].partition("form-action")[2].partition(";")[0]


def test_a_device_that_shows_pages_can_show_its_code_as_a_picture(tv: Television) -> None:
    code = tv.begin()
    page = tv.browser.get("/activate/code", {"user_code": code})
    assert "<svg" in page.text
    assert code in page.text
    assert tv.browser.get("/activate/code", {"user_code": "anything"}).location.endswith("/activate")
    # The picture does not reveal whether the code exists.
    assert tv.browser.get("/activate/code", {"user_code": "BBBB-BBBB"}).status == 200


def test_the_field_for_codes_of_digits_uses_a_numeric_keyboard(tv: Television) -> None:
    set_form(tv.tenant, charset="digits")
    assert 'inputmode="numeric"' in tv.browser.get("/activate").body.decode()


def test_the_page_asks_for_an_organization_if_the_client_requires_one(tenant: Tenant) -> None:
    tv = television(tenant, settings={"organization_usage": "require", "organization_require_behavior": "pre_login_prompt"})
    assert tv.enter(tv.begin()).location.startswith("/u/organization")


def test_details_are_on_the_confirmation_page_and_in_the_tokens_of_the_device(tv: Television) -> None:
    types = [{"type": "purchase", "sentence": "Buy {film}.", "schema": {"required": ["film"]}}]
    create_api_resource(
        tenant_id=tv.tenant.pk, identifier="urn:shop", settings={"authorization_details": types, "allow_offline_access": True}
    )
    asked = [{"type": "purchase", "film": "Metropolis", "actions": ["rent", "buy"]}]
    wrong = tv.start(audience="urn:shop", authorization_details=json.dumps([{"type": "purchase"}]))
    assert (wrong.status, wrong.json()["error"]) == (400, "invalid_authorization_details")

    tv.begin(audience="urn:shop", authorization_details=json.dumps(asked), scope="openid offline_access")
    page = tv.ask()
    assert "Buy <strong><bdi>Metropolis</bdi></strong>." in page.body.decode()
    assert "<dd><bdi>rent, buy</bdi></dd>" in page.body.decode()
    tv.browser.submit(page, answer="allow")
    more = tv.poll(authorization_details=json.dumps([{"type": "purchase", "film": "Faust"}]))
    assert more.json()["error"] == "invalid_authorization_details"
    less = [{"type": "purchase", "film": "Metropolis", "actions": ["rent"]}]
    answer = tv.poll(authorization_details=json.dumps(less)).json()
    assert answer["authorization_details"] == decoded(answer["access_token"])[1]["authorization_details"] == less
    again = ask_token(tv.tenant, {"grant_type": "refresh_token", "refresh_token": answer["refresh_token"], **tv.proof}).json()
    assert again["authorization_details"] == asked
