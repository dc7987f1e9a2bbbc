"""The account page of staff: adding, naming and removing factors, and the sessions that end with each change."""

from __future__ import annotations

import re
import time

import pytest
from django.test import Client
from django.urls import reverse

from foundation.secrets import totp
from identity.factors.staff_factors import recovery_codes_left
from identity.models import Staff, StaffFactor, Tenant
from tests.config.console.staff_account.sessions import FACTOR, add_passkey, give_password, grow_old, is_in, options
from tests.config.console.test_admin_pages import blocked
from tests.factories.admin import browser_of, new_staff
from tests.factories.authenticator import Authenticator
from tests.factories.staff_factors import add_app

ACCOUNT, APP, PASSKEY, CODES = (f"/admin/account/{name}" for name in ("", "app/", "passkey/", "recovery-codes/"))
_SHOWN_CODE = re.compile(r"<code>([A-Z2-7-]{27})</code>")


@pytest.fixture
def browser(staff: Staff) -> Client:
    return browser_of(staff)


def secret_on(page: str) -> str:
    found = re.search(r'class="app-key"[^>]*>([A-Z2-7 ]+)<', page)
    assert found is not None
    return found[1].replace(" ", "")


def act(name: str, factor: StaffFactor) -> str:
    return reverse(f"admin:account_{name}", args=(factor.pk,))


def test_an_anonymous_visitor_sees_nothing_of_the_account(visitor: Client, app: StaffFactor) -> None:
    for address in (ACCOUNT, APP, PASSKEY, CODES, act("rename", app), act("remove", app)):
        assert visitor.get(address).headers["location"].startswith("/admin/login/"), address
        assert visitor.post(address).headers["location"].startswith("/admin/login/"), address


def test_a_code_of_the_displayed_secret_enrolls_the_app(browser: Client, staff: Staff) -> None:
    page = browser.get(APP).content.decode()
    secret = secret_on(page)
    assert "<svg" in page
    wrong = browser.post(APP, {"name": "Phone", "code": "000000"}).content.decode()
    assert "is wrong" in wrong
    assert secret_on(wrong) == secret
    assert not staff.factors.exists()

    done = browser.post(APP, {"name": "Phone", "code": totp.code_of(secret, totp.step_at(time.time()))})
    codes = _SHOWN_CODE.findall(done.content.decode())
    assert len(set(codes)) == 10
    assert staff.factors.get().name == "Phone"
    assert "no-store" in done.headers["Cache-Control"]
    assert not any(code in browser.get(ACCOUNT).content.decode() for code in codes)


def test_a_code_of_a_secret_chosen_by_the_browser_enrolls_nothing(browser: Client, staff: Staff) -> None:
    browser.get(APP)
    own = totp.new_secret()
    browser.post(APP, {"name": "Phone", "secret": own, "code": totp.code_of(own, totp.step_at(time.time()))})

    assert not staff.factors.exists()


def test_a_passkey_of_another_site_or_without_user_verification_is_not_enrolled(browser: Client, staff: Staff) -> None:
    for authenticator in (Authenticator(origin="https://elsewhere.example.test"), Authenticator(verifies=False), Authenticator(rp_id="x")):
        add_passkey(browser, authenticator)
    made = Authenticator().made(options(browser, "account_passkey_options"))
    browser.session.pop("passkey_challenge", None)
    browser.post(PASSKEY, {"name": "None", "credential": ""})
    again = browser.post(PASSKEY, {"name": "Late", "credential": made})

    assert "did not create a valid passkey" in again.content.decode()
    assert not staff.factors.exists()


def test_the_options_require_a_discoverable_passkey_and_user_verification(browser: Client, staff: Staff) -> None:
    first = add_passkey(browser)
    asked = options(browser, "account_passkey_options")

    assert asked["rp"]["id"] == "localhost"
    assert asked["authenticatorSelection"]["residentKey"] == "required"
    assert asked["authenticatorSelection"]["userVerification"] == "required"
    assert asked["attestation"] == "none"
    assert len(asked["excludeCredentials"]) == 1
    assert asked["user"]["id"] == first.user_handle
    assert staff.email not in first.user_handle
    assert staff.factors.get().transports == ["internal"]


def test_every_change_ends_other_sessions_and_changes_the_key_of_the_current_session(browser: Client, staff: Staff) -> None:
    def others_end(do: object) -> None:
        other = browser_of(staff)
        assert is_in(other)
        before = browser.cookies["staff"].value
        do()  # type: ignore[operator]
        assert not is_in(other)
        assert is_in(browser)
        assert browser.cookies["staff"].value != before

    others_end(lambda: add_passkey(browser))
    staff.refresh_from_db()
    others_end(lambda: add_passkey(browser, name="Second"))
    staff.refresh_from_db()
    others_end(lambda: browser.post(CODES))
    staff.refresh_from_db()
    others_end(lambda: browser.post(act("remove", staff.factors.get(name="Second"))))


def test_removing_the_last_factor_needs_an_explicit_confirmation(browser: Client, staff: Staff) -> None:
    add_passkey(browser)
    factor = staff.factors.get()
    assert "your last second factor" in browser.get(act("remove", factor)).content.decode()
    browser.post(act("remove", factor))
    assert staff.factors.exists()

    browser.post(act("remove", factor), {"is_last_known": "on"})
    assert not staff.factors.exists()
    assert recovery_codes_left(staff) == 0


def test_removing_one_of_several_factors_needs_no_confirmation(browser: Client, staff: Staff) -> None:
    add_passkey(browser)
    add_passkey(browser, name="Second")
    browser.post(act("remove", staff.factors.get(name="Second")))

    assert staff.factors.get().name == "Passkey"
    assert recovery_codes_left(staff) == 10


def test_a_factor_of_another_staff_account_is_not_found(browser: Client, staff: Staff, tenant: Tenant) -> None:
    add_passkey(browser)
    theirs = add_app(new_staff(tenant), "Theirs")
    for name in ("rename", "remove"):
        assert browser.get(act(name, theirs)).status_code == 404
        assert browser.post(act(name, theirs), {"name": "x", "is_last_known": "on"}).status_code == 404
    assert StaffFactor.objects.get(pk=theirs.pk).name == "Theirs"
    assert "Theirs" not in browser.get(ACCOUNT).content.decode()


def test_a_factor_can_be_renamed_and_markup_in_its_name_is_escaped(browser: Client, staff: Staff) -> None:
    add_passkey(browser)
    browser.post(act("rename", staff.factors.get()), {"name": "<b>Key</b>"})

    page = browser.get(ACCOUNT).content.decode()
    assert "&lt;b&gt;Key&lt;/b&gt;" in page
    assert "<b>Key" not in page


def test_new_recovery_codes_replace_the_old_codes_and_viewing_the_page_changes_nothing(
    browser: Client, staff: Staff, visitor: Client
) -> None:
    add_passkey(browser)
    browser.get(CODES)
    first = _SHOWN_CODE.findall(browser.post(CODES).content.decode())
    second = _SHOWN_CODE.findall(browser.post(CODES).content.decode())
    give_password(visitor, staff)
    visitor.post(FACTOR, {"code": first[0]})
    assert not is_in(visitor)
    visitor.post(FACTOR, {"code": second[0]})
    assert is_in(visitor)


def test_an_account_without_a_factor_has_no_recovery_codes(browser: Client) -> None:
    assert browser.get(CODES).status_code == 404
    assert browser.post(CODES).status_code == 404


def test_a_session_without_a_recent_proof_cannot_change_factors(browser: Client, staff: Staff) -> None:
    add_passkey(browser)
    factor = staff.factors.get()
    grow_old(browser)
    for address in (APP, PASSKEY, CODES, act("rename", factor), act("remove", factor), reverse("admin:password_change")):
        assert browser.get(address).headers["location"].startswith("/admin/account/prove/"), address
        assert browser.post(address, {"name": "x", "is_last_known": "on"}).status_code == 302, address
    assert browser.post(reverse("admin:account_passkey_options")).status_code == 302
    assert staff.factors.get().name == "Passkey"


def test_every_page_of_the_account_complies_with_the_content_security_policy(browser: Client, staff: Staff) -> None:
    add_passkey(browser)
    factor = staff.factors.get()
    pages = [browser.get(address) for address in (ACCOUNT, APP, PASSKEY, CODES, act("rename", factor), act("remove", factor))]
    pages.append(browser.post(CODES))
    grow_old(browser)
    pages.append(browser.get("/admin/account/prove/"))
    for page in pages:
        assert page.status_code == 200, page.request["PATH_INFO"]
        assert not blocked(page.content.decode()), page.request["PATH_INFO"]
    assert f'href="{ACCOUNT}"' in pages[0].content.decode()
