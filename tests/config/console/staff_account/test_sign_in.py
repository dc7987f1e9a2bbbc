"""Sign-in with a factor: the password alone is not enough, codes are accepted once, guessing is limited, and all refusals are the same."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import time_machine
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from config.console.staff_account import tries
from identity.factors.staff_factors import remove_factor, renew_recovery_codes
from identity.models import Staff, StaffFactor, Tenant
from identity.services.staff import update_staff
from identity.services.tenants import set_tenant_status
from tests.config.console.staff_account.sessions import FACTOR, START, add_passkey, give_password, is_in, options
from tests.factories.admin import PASSWORD, browser_of, new_staff
from tests.factories.authenticator import Authenticator
from tests.factories.staff_factors import add_app, code_now

WRONG = "000000"
PASSKEY = "/admin/login/passkey/"


@pytest.fixture
def passkey(staff: Staff) -> Authenticator:
    return add_passkey(browser_of(staff))


def refused(browser: Client, code: str) -> str:
    """Submit a code that must be refused. Return the page."""
    answer = browser.post(FACTOR, {"code": code})
    assert answer.status_code == 200
    assert not is_in(browser)
    return answer.content.decode()


def sign_in(browser: Client, answer: str, following: str = START) -> str:
    """Send the response of a passkey to the sign-in page. Return the URL of the redirect."""
    return str(browser.post(PASSKEY, {"credential": answer, "next": following}).headers["location"])


def test_an_account_with_a_factor_cannot_sign_in_with_its_password_alone(visitor: Client, staff: Staff, app: StaffFactor) -> None:
    assert give_password(visitor, staff) == FACTOR
    assert not is_in(visitor)
    assert visitor.get("/admin/account/").status_code == 302


def test_a_wrong_code_is_refused(visitor: Client, staff: Staff, app: StaffFactor) -> None:
    give_password(visitor, staff)
    for code in (WRONG, "", "not a code", "AAAAAA-AAAAAA-AAAAAA-AAAAAA"):
        refused(visitor, code)


def test_a_code_can_be_used_for_one_sign_in(visitor: Client, staff: Staff, app: StaffFactor) -> None:
    code = code_now(app)
    give_password(visitor, staff, "/admin/identity/user/")
    answer = visitor.post(FACTOR, {"code": f"{code[:3]} {code[3:]}"})
    assert answer.headers["location"] == "/admin/identity/user/"
    assert is_in(visitor)

    other = Client(headers={"host": "localhost"})
    give_password(other, staff)
    assert "used before" in refused(other, code)


def test_a_code_without_the_password_redirects_to_the_password_page(visitor: Client, app: StaffFactor) -> None:
    assert visitor.post(FACTOR, {"code": code_now(app)}).headers["location"] == reverse("admin:login")


def test_a_recovery_code_can_be_used_for_one_sign_in(visitor: Client, staff: Staff, app: StaffFactor) -> None:
    _, codes = renew_recovery_codes(staff_id=staff.pk)
    give_password(visitor, staff)
    visitor.post(FACTOR, {"code": codes[0].lower()})
    assert is_in(visitor)
    assert "9 of 10 codes left" in visitor.get("/admin/account/").content.decode()

    visitor.post("/admin/logout/")
    give_password(visitor, staff)
    refused(visitor, codes[0])


def test_the_right_code_is_refused_after_too_many_guesses(visitor: Client, staff: Staff, app: StaffFactor) -> None:
    give_password(visitor, staff)
    for _ in range(tries.TRIES.size):
        refused(visitor, WRONG)

    assert "Too many attempts" in refused(visitor, code_now(app))
    assert "Too many failed attempts" in give_password(visitor, staff)


def test_attempts_are_counted_even_without_rate_limits(visitor: Client, staff: Staff, app: StaffFactor, settings: object) -> None:
    settings.RATE_LIMITS_ENABLED = False  # type: ignore[attr-defined]
    give_password(visitor, staff)
    for _ in range(tries.TRIES.size):
        refused(visitor, WRONG)

    assert "Too many attempts" in refused(visitor, code_now(app))


def test_the_time_between_password_and_factor_is_limited(visitor: Client, staff: Staff, app: StaffFactor) -> None:
    give_password(visitor, staff)
    with time_machine.travel(timezone.now() + timedelta(minutes=11), tick=False):
        assert visitor.post(FACTOR, {"code": code_now(app)}).headers["location"] == reverse("admin:login")


@pytest.mark.parametrize("change", ["another password", "switched off", "suspended tenant", "other factors"])
def test_a_change_of_the_account_between_password_and_factor_ends_the_sign_in(
    visitor: Client, staff: Staff, app: StaffFactor, change: str
) -> None:
    give_password(visitor, staff)
    operator = new_staff(None)
    if change == "another password":
        update_staff(staff_id=staff.pk, by=operator, password="another-long-password-2")
    if change == "switched off":
        update_staff(staff_id=staff.pk, by=operator, is_active=False)
    if change == "suspended tenant":
        set_tenant_status(tenant_id=str(staff.tenant_id), status=Tenant.Status.SUSPENDED)
    if change == "other factors":
        add_app(staff, "Another")

    assert visitor.post(FACTOR, {"code": code_now(app)}).headers["location"] == reverse("admin:login")
    assert not is_in(visitor)


def test_the_session_key_changes_at_each_step(visitor: Client, staff: Staff, app: StaffFactor) -> None:
    options(visitor, "passkey_sign_in_options")
    keys = [visitor.cookies["staff"].value]
    give_password(visitor, staff)
    keys.append(visitor.cookies["staff"].value)
    visitor.post(FACTOR, {"code": code_now(app)})
    keys.append(visitor.cookies["staff"].value)

    assert len(set(keys)) == 3


def test_a_passkey_signs_in_without_a_password_and_redirects_to_the_requested_page(visitor: Client, passkey: Authenticator) -> None:
    answer = passkey.signed(options(visitor, "passkey_sign_in_options"))

    assert sign_in(visitor, answer, "/admin/identity/user/") == "/admin/identity/user/"
    assert is_in(visitor)


def test_a_passkey_works_as_second_factor_after_the_password(visitor: Client, staff: Staff, passkey: Authenticator) -> None:
    give_password(visitor, staff)
    asked = options(visitor, "passkey_sign_in_options", "?for=second-factor")
    assert len(asked["allowCredentials"]) == 1
    visitor.post(FACTOR, {"credential": passkey.signed(asked)})

    assert is_in(visitor)


def test_only_the_right_password_reveals_whether_an_account_has_passkeys(visitor: Client, passkey: Authenticator) -> None:
    for query in ("", "?for=second-factor"):
        asked = options(visitor, "passkey_sign_in_options", query)
        assert not asked.get("allowCredentials")
        assert asked["userVerification"] == "required"


@pytest.mark.parametrize(
    "fault",
    [
        {"origin": "http://localhost.example.test"},
        {"origin": "http://localhost:8000"},
        {"rp_id": "example.test"},
        {"verifies": False},
        {"count": -1},
        {"key": Authenticator().key},
        {"user_handle": "c29tZWJvZHkgZWxzZQ"},
        {"credential_id": b"nobody's"},
    ],
    ids=lambda fault: next(iter(fault)),
)
def test_a_passkey_response_with_one_wrong_value_is_refused(visitor: Client, passkey: Authenticator, fault: dict[str, Any]) -> None:
    asked = options(visitor, "passkey_sign_in_options")
    for name, value in fault.items():
        setattr(passkey, name, value)

    assert urlsplit(sign_in(visitor, passkey.signed(asked))).path == reverse("admin:login")
    assert not is_in(visitor)
    assert "The passkey was not accepted" in visitor.get(reverse("admin:login")).content.decode()


@pytest.mark.parametrize(
    "answer",
    ["", "{", "[]", '{"id": 7, "response": {}}', '{"id": "x", "response": {}}', "[" * 30_000],
    ids=["nothing", "no JSON", "a list", "a number", "unknown", "deep"],
)
def test_a_malformed_passkey_response_is_refused(visitor: Client, passkey: Authenticator, answer: str) -> None:
    options(visitor, "passkey_sign_in_options")

    assert urlsplit(sign_in(visitor, answer)).path == reverse("admin:login")
    assert not is_in(visitor)


def test_a_passkey_response_is_accepted_once_and_only_in_its_own_session(visitor: Client, passkey: Authenticator) -> None:
    answer = passkey.signed(options(visitor, "passkey_sign_in_options"))
    other = Client(headers={"host": "localhost"})
    options(other, "passkey_sign_in_options")
    sign_in(other, answer)
    assert not is_in(other)

    sign_in(visitor, answer)
    assert is_in(visitor)
    visitor.post("/admin/logout/")
    sign_in(visitor, answer)
    assert not is_in(visitor)


def test_a_challenge_expires_after_five_minutes(visitor: Client, passkey: Authenticator) -> None:
    answer = passkey.signed(options(visitor, "passkey_sign_in_options"))
    with time_machine.travel(timezone.now() + timedelta(minutes=6), tick=False):
        sign_in(visitor, answer)
        assert not is_in(visitor)


def test_a_sign_in_response_is_not_accepted_as_a_second_factor(visitor: Client, staff: Staff, passkey: Authenticator) -> None:
    give_password(visitor, staff)
    answer = passkey.signed(options(visitor, "passkey_sign_in_options"))
    page = visitor.post(FACTOR, {"credential": answer})

    assert "The passkey was not accepted" in page.content.decode()
    assert not is_in(visitor)


def test_the_passkey_of_another_staff_account_is_not_accepted_as_second_factor(visitor: Client, staff: Staff, tenant: Tenant) -> None:
    add_app(staff)
    colleague = add_passkey(browser_of(new_staff(tenant)))
    give_password(visitor, staff)
    visitor.post(FACTOR, {"credential": colleague.signed(options(visitor, "passkey_sign_in_options", "?for=second-factor"))})

    assert not is_in(visitor)


@pytest.mark.parametrize("why", ["removed", "switched off", "suspended tenant"])
def test_an_unusable_passkey_gets_the_same_answer_as_a_wrong_passkey(
    visitor: Client, staff: Staff, passkey: Authenticator, why: str
) -> None:
    if why == "removed":
        remove_factor(staff_id=staff.pk, factor_id=staff.factors.get().pk)
    if why == "switched off":
        update_staff(staff_id=staff.pk, by=new_staff(None), is_active=False)
    if why == "suspended tenant":
        set_tenant_status(tenant_id=str(staff.tenant_id), status=Tenant.Status.SUSPENDED)
    sign_in(visitor, passkey.signed(options(visitor, "passkey_sign_in_options")))

    assert not is_in(visitor)
    assert "The passkey was not accepted" in visitor.get(reverse("admin:login")).content.decode()


@pytest.mark.parametrize("following", ["https://elsewhere.example.test/", "//elsewhere.example.test/", "javascript:alert(1)"])
def test_a_sign_in_never_redirects_to_another_site(visitor: Client, staff: Staff, passkey: Authenticator, following: str) -> None:
    assert sign_in(visitor, passkey.signed(options(visitor, "passkey_sign_in_options")), following) == START


def test_the_rate_of_challenges_per_address_is_limited(visitor: Client, committed_db: None) -> None:
    answers = [visitor.post(reverse("admin:passkey_sign_in_options")) for _ in range(tries.CHALLENGES.size + 2)]

    assert answers[0].status_code == 200
    assert answers[-1].status_code == 429
    assert answers[-1].headers["x-ratelimit-remaining"] == "0"
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_the_urls_for_sign_in_with_a_passkey_refuse_get(visitor: Client, committed_db: None) -> None:
    for name in ("passkey_sign_in", "passkey_sign_in_options"):
        assert visitor.get(reverse(f"admin:{name}")).status_code == 405


def test_the_page_that_asks_for_the_factor_complies_with_the_content_security_policy(
    visitor: Client, staff: Staff, passkey: Authenticator
) -> None:
    from tests.config.console.test_admin_pages import blocked

    give_password(visitor, staff)
    page = visitor.get(FACTOR).content.decode()
    assert not blocked(page)
    assert not blocked(visitor.get(reverse("admin:login")).content.decode())
    assert PASSWORD not in page


def test_a_refused_sign_in_is_logged_without_the_typed_text(
    visitor: Client, staff: Staff, app: StaffFactor, caplog: pytest.LogCaptureFixture
) -> None:
    give_password(visitor, staff)
    refused(visitor, "123123")
    said = json.dumps([str(record.msg) for record in caplog.records])

    assert "staff proof refused" in said
    assert "123123" not in said
