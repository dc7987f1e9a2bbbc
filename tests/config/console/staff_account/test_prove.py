"""Requests for a new proof: their reasons, their validity, and the redirect afterwards. No form is sent twice or automatically."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from authapi.models import Client as AuthClient
from authapi.services.clients import create_client
from config.console.staff_account import tries
from identity.factors.staff_factors import renew_recovery_codes
from identity.models import Staff, Tenant
from tests.config.console.staff_account.sessions import add_passkey, give_password, grow_old, options
from tests.factories.admin import PASSWORD, browser_of
from tests.factories.authenticator import Authenticator
from tests.factories.staff_factors import add_app, code_now

PROVE = "/admin/account/prove/"


@pytest.fixture
def client(tenant: Tenant) -> AuthClient:
    made, _ = create_client(tenant_id=tenant.pk, name="App", grant_types=["client_credentials"])
    return made


@pytest.fixture
def rotation(client: AuthClient) -> str:
    """Return the URL of a protected page."""
    return reverse("admin:authapi_client_action", args=(quote(client.pk), "rotate-secret"))


@pytest.fixture
def browser(staff: Staff) -> Client:
    """Return a browser whose session has an expired proof."""
    browser = browser_of(staff)
    grow_old(browser)
    return browser


def digest_of(client: AuthClient) -> str:
    return str(AuthClient.objects.of(client.tenant_id).get(pk=client.pk).secret_digest)


def asked(browser: Client, address: str) -> str:
    """Open a protected page. Return the URL of the page that requests the proof."""
    place = browser.get(address).headers["location"]
    assert urlsplit(place).path == PROVE
    assert parse_qs(urlsplit(place).query)["next"] == [address]
    return str(place)


def test_a_recently_proven_session_needs_no_new_proof(staff: Staff, rotation: str) -> None:
    browser = browser_of(staff)
    grow_old(browser, minutes=14)

    assert browser.get(rotation).status_code == 200


def test_a_session_without_a_proof_time_needs_a_proof(staff: Staff, rotation: str) -> None:
    browser = Client(headers={"host": "localhost"})
    browser.force_login(staff)

    assert urlsplit(asked(browser, rotation)).path == PROVE


def test_a_proof_time_in_the_future_does_not_count(browser: Client, rotation: str) -> None:
    grow_old(browser, minutes=-60)

    assert urlsplit(asked(browser, rotation)).path == PROVE


def test_a_setting_sets_the_validity_of_a_proof(browser: Client, rotation: str, settings: object) -> None:
    settings.STAFF_PROOF_MINUTES = 20  # type: ignore[attr-defined]

    assert browser.get(rotation).status_code == 200


def test_the_right_password_redirects_back_and_a_wrong_password_does_not(browser: Client, rotation: str) -> None:
    place = asked(browser, rotation)
    wrong = browser.post(place, {"password": "wrong", "next": rotation})
    assert "The password is wrong" in wrong.content.decode()
    assert browser.get(rotation).status_code == 302

    key = browser.cookies["staff"].value
    assert browser.post(place, {"password": PASSWORD, "next": rotation}).headers["location"] == rotation
    assert browser.cookies["staff"].value != key
    assert browser.get(rotation).status_code == 200


def test_a_form_interrupted_by_the_request_for_a_proof_is_not_sent_automatically(
    browser: Client, client: AuthClient, rotation: str
) -> None:
    before = digest_of(client)
    place = browser.post(rotation).headers["location"]
    assert "Nothing was done yet" in browser.get(place).content.decode()
    back = browser.post(place, {"password": PASSWORD, "next": rotation}, follow=True)

    assert back.redirect_chain[-1][0] == rotation
    assert "Nothing was changed yet" in back.content.decode()
    assert digest_of(client) == before
    browser.post(rotation)
    assert digest_of(client) != before


def test_an_account_with_a_factor_cannot_prove_itself_with_its_password(browser: Client, staff: Staff, rotation: str) -> None:
    app = add_app(staff)
    fresh = browser_of(Staff.objects.get(pk=staff.pk))
    place = asked(fresh, rotation)
    fresh.post(place, {"password": PASSWORD, "next": rotation})
    assert fresh.get(rotation).status_code == 302

    fresh.post(place, {"code": "000000", "next": rotation})
    assert fresh.get(rotation).status_code == 302
    assert fresh.post(place, {"code": code_now(app), "next": rotation}).headers["location"] == rotation
    assert fresh.get(rotation).status_code == 200


def test_the_code_used_for_the_sign_in_cannot_be_used_as_a_proof(visitor: Client, staff: Staff, rotation: str) -> None:
    app = add_app(staff)
    code = code_now(app)
    give_password(visitor, staff)
    visitor.post("/admin/login/factor/", {"code": code})
    grow_old(visitor)
    visitor.post(PROVE, {"code": code, "next": rotation})

    assert visitor.get(rotation).status_code == 302


def test_a_recovery_code_is_accepted_as_a_proof_once(staff: Staff, rotation: str) -> None:
    add_app(staff)
    staff, codes = renew_recovery_codes(staff_id=staff.pk)
    for expected in (200, 302):
        browser = browser_of(staff)
        grow_old(browser)
        browser.post(PROVE, {"code": codes[0], "next": rotation})
        assert browser.get(rotation).status_code == expected


def test_a_passkey_is_accepted_as_a_proof_but_its_sign_in_response_is_not(staff: Staff, rotation: str) -> None:
    browser = browser_of(staff)
    passkey = add_passkey(browser)
    grow_old(browser)
    answer = passkey.signed(options(browser, "passkey_sign_in_options"))
    browser.post(PROVE, {"credential": answer, "next": rotation})
    assert browser.get(rotation).status_code == 302

    foreign = Authenticator().signed(options(browser, "prove_options"))
    browser.post(PROVE, {"credential": foreign, "next": rotation})
    assert browser.get(rotation).status_code == 302

    browser.post(PROVE, {"credential": passkey.signed(options(browser, "prove_options")), "next": rotation})
    assert browser.get(rotation).status_code == 200


def test_failed_passwords_on_the_proof_page_end_the_session(browser: Client, rotation: str) -> None:
    for _ in range(tries.TRIES.size):
        browser.post(PROVE, {"password": "wrong", "next": rotation})
    page = browser.post(PROVE, {"password": PASSWORD, "next": rotation}).content.decode()

    assert "Too many attempts" in page
    assert browser.get(rotation).status_code == 302


@pytest.mark.parametrize("following", ["https://elsewhere.example.test/", "//elsewhere.example.test/", "javascript:alert(1)", ""])
def test_a_proof_never_redirects_to_another_site(browser: Client, following: str) -> None:
    assert browser.post(PROVE, {"password": PASSWORD, "next": following}).headers["location"] == "/admin/"
