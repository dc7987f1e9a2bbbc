"""`/u/mfa-enroll`: which users can set up a factor during a login, and which setups are accepted."""

from __future__ import annotations

import re
import threading
import time

import time_machine
from django.db import connection, transaction
from django.test import override_settings

from authapi.models import Session
from identity.factors.user_factors import OPEN_FOR
from identity.models import EnrolledFactor
from identity.services.users import update_user
from tests.authapi.browser import Page
from tests.authapi.factors.walks import (
    NUMBER,
    Walk,
    another,
    app_code,
    devices_of,
    give_address,
    give_app,
    login,  # noqa: F401  (used by `walk`)
    messages_of,
    notices_of,
    sent_code,
    set_factors,
    walk,
)
from tests.authapi.passwordless.messages import wrong
from tests.deadlines import eventually
from tests.factories.authenticator import Authenticator

__all__ = ["walk"]
ALL = ("otp", "sms", "email", "webauthn-roaming", "webauthn-platform")


def secret_on(page: Page) -> str:
    """Return the secret of an authenticator app, which a page shows as text to type."""
    found = re.search(r'class="key"><bdi>([A-Z2-7 ]+)</bdi>', page.body.decode())
    assert found is not None, page.text
    return found.group(1).replace(" ", "")


def finished(walk: Walk, page: Page) -> Page:
    """Confirm that the recovery code is saved."""
    assert "Save your recovery code" in page.text
    return walk.browser.submit(page, saved="1")


def test_setting_up_an_app_completes_this_login_and_shows_a_recovery_code(walk: Walk) -> None:
    set_factors(walk.at.tenant, *ALL, policy="always")
    page = walk.to_second()
    for label in ("Authenticator app", "Code by text message", "Code by email", "Security key", "Screen lock of this device"):
        assert label in page.text
    page = walk.give(page, kind="totp")
    secret = secret_on(page)
    assert secret_on(walk.again_at(page)) == secret
    for typed in ("", "000000", "x" * 300):
        assert walk.browser.submit(page, code=typed).status == 400
    assert devices_of(walk.at.user) == []
    code = app_code(secret)
    shown = walk.give(page, code=code)
    assert "code" in finished(walk, shown).answer
    [session] = Session.objects.of(walk.at.tenant.pk)
    assert [method["name"] for method in session.methods] == ["pwd", "mfa", "otp"]
    assert (devices_of(walk.at.user), notices_of(walk.at.tenant)) == (["totp"], ["added"])
    assert "code" in walk.again().answer
    # The code that confirmed the app is not accepted for a login.
    page = walk.to_second(prompt="login")
    assert walk.browser.submit(page, code=code).status == 400


def test_another_login_of_the_user_cannot_see_or_confirm_a_setup_in_progress(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp", "sms", "email", policy="always")
    page = walk.give(walk.to_second(), kind="totp")
    secret, thief = secret_on(page), another(walk)
    theirs = thief.to_second()
    posted = thief.give(theirs, code=app_code(secret))
    assert "Protect your account" in posted.text
    assert secret_on(thief.give(theirs, kind="totp")) != secret
    # The second login has replaced the setup of the first login. The first login cannot confirm the new setup and has to start again.
    ended = walk.browser.submit(page, code=app_code(secret))
    assert (ended.status, "The setup has ended. Begin again." in ended.text) == (409, True)
    mailed = walk.give(walk.again(), kind="email")
    code = sent_code(walk.at.tenant)
    theirs = thief.give(thief.again(), kind="email")
    assert thief.browser.submit(theirs, code=code).status in {400, 409}
    assert devices_of(walk.at.user) == []
    assert mailed.status == 200


def test_if_one_of_two_logins_sets_up_a_factor_the_other_must_prove_it(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp", "sms", policy="always")
    mine, thief = walk.give(walk.to_second(), kind="totp"), another(walk)
    theirs = thief.give(thief.give(thief.to_second(), kind="phone"), phone_number=NUMBER)
    code = sent_code(walk.at.tenant)
    assert "code" in finished(walk, walk.give(mine, code=app_code(secret_on(mine)))).answer
    late = thief.give(theirs, code=code)
    assert "Confirm that it is you" in late.text
    assert devices_of(walk.at.user) == ["totp"]


def test_a_setup_fails_when_another_factor_is_enrolled_at_the_same_time(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp", "sms", policy="always")
    page = walk.give(walk.to_second(), kind="totp")
    code, found = app_code(secret_on(page)), []

    def give() -> None:
        found.append(walk.browser.submit(page, code=code).status)
        connection.close()

    late = threading.Thread(target=give)
    with transaction.atomic():
        # The page sees no factor yet, and waits for the lock on the user.
        give_address(walk.at.user, "phone", NUMBER)
        late.start()
        eventually(waits_for_lock)
    late.join()
    assert (found, devices_of(walk.at.user)) == ([409], ["phone"])


def waits_for_lock() -> bool:
    with connection.cursor() as cursor:
        # Without this statement, PostgreSQL returns the statistics that this transaction read first.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        return bool(cursor.fetchone()[0])


def test_a_setup_requires_a_complete_first_proof_and_a_user_without_factors(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp", "sms", policy="always")
    nothing = walk.followed(walk.at.ask())
    state = nothing.fields()["state"]
    assert "Password" in walk.followed(walk.browser.get("/u/mfa-enroll", {"state": state})).text
    page = walk.to_second()
    give_app(walk.at.user)
    assert "Confirm that it is you" in walk.give(page, kind="phone").text
    assert devices_of(walk.at.user) == ["totp"]


def test_an_older_session_must_log_in_again_before_it_sets_up_a_factor(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp")
    assert "code" in walk.to_second().answer
    set_factors(walk.at.tenant, "otp", policy="always")
    assert "Protect your account" in walk.again().text
    with time_machine.travel(time.time() + 700):
        page = walk.again()
        assert "Password" in page.text
        assert "Protect your account" in walk.followed(walk.at.log_in(page)).text


def test_a_session_ended_by_a_new_password_cannot_set_up_a_factor(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp", policy="always")
    page = walk.give(walk.to_second(), kind="totp")
    update_user(tenant_id=walk.at.tenant.pk, user_id=walk.at.user.user_id, changes={"password": "Another-Horse-8-Battery"})
    assert "Password" in walk.give(page, code=app_code(secret_on(page))).text
    assert devices_of(walk.at.user) == []


def test_a_setup_expires(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp", policy="always")
    page = walk.give(walk.to_second(), kind="totp")
    secret = secret_on(page)
    EnrolledFactor.objects.of(walk.at.tenant.pk).update(created_at=EnrolledFactor.objects.of(walk.at.tenant.pk).get().created_at - OPEN_FOR)
    assert walk.browser.submit(page, code=app_code(secret)).status == 409


def test_a_phone_is_set_up_by_a_code_and_premium_numbers_are_refused(walk: Walk) -> None:
    set_factors(walk.at.tenant, "sms", "otp", policy="always")
    page = walk.give(walk.to_second(), kind="phone")
    for typed in ("", "12", "+1 900 555 0100"):
        refused = walk.browser.submit(page, phone_number=typed)
        assert (refused.status, messages_of(walk.at.tenant)) == (400, [])
    page = walk.give(page, phone_number=NUMBER)
    code = sent_code(walk.at.tenant)
    assert walk.browser.submit(page, again="1").status == 429
    refused = walk.browser.submit(page, code=wrong(code))
    assert (refused.status, "wrong or has expired" in refused.text) == (400, True)
    assert "code" in finished(walk, walk.give(page, code=code)).answer
    assert EnrolledFactor.objects.of(walk.at.tenant.pk).get(kind="phone").address == NUMBER


def test_mailed_codes_are_sent_only_to_the_address_of_the_profile(walk: Walk) -> None:
    set_factors(walk.at.tenant, "email", policy="always")
    page = walk.give(walk.to_second(), kind="email", address="eve@example.test", phone_number="eve@example.test")
    assert "ada@example.test" in page.text
    assert "code" in finished(walk, walk.give(page, code=sent_code(walk.at.tenant))).answer
    assert EnrolledFactor.objects.of(walk.at.tenant.pk).get(kind="email").address == "ada@example.test"


def test_a_key_is_set_up_for_this_domain_and_accepted_at_the_next_login(walk: Walk) -> None:
    set_factors(walk.at.tenant, "webauthn-roaming", policy="always")
    host = walk.browser.host
    page = walk.give(walk.to_second(), kind="webauthn-roaming")
    key = Authenticator(origin=f"http://{host}", rp_id=host, verifies=False)
    evil = Authenticator(origin="http://evil.example", rp_id=host, verifies=False)
    assert walk.browser.submit(page, credential=evil.made(walk.options(page))).status == 400
    # The refused answer has used up its challenge.
    assert walk.browser.submit(page, credential=key.made(walk.options(page))).status == 400
    page = walk.again_at(page)
    made = key.made(walk.options(page))
    assert "code" in finished(walk, walk.give(page, credential=made)).answer
    page = walk.to_second(prompt="login")
    assert walk.options(page)["allowCredentials"][0]["transports"] == ["internal"]
    assert "code" in walk.browser.submit(page, credential=key.signed(walk.options(page))).answer


def test_the_page_offers_no_kind_of_factor_whose_codes_cannot_be_sent(walk: Walk) -> None:
    set_factors(walk.at.tenant, "sms", "otp", policy="always")
    with override_settings(SMS_SENDER={}):
        page = walk.to_second()
        assert ("Code by text message" in page.text, "Authenticator app" in page.text) == (False, True)
        assert "Protect your account" in walk.give(page, kind="phone").text
        set_factors(walk.at.tenant, "sms", policy="always")
        nothing = walk.again()
        assert (nothing.status, "No method can be set up right now." in nothing.text) == (503, True)


def test_a_policy_for_new_browsers_applies_to_each_browser_separately(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp", policy="new-device")
    page = walk.give(walk.to_second(), kind="totp")
    secret = secret_on(page)
    assert "code" in finished(walk, walk.give(page, code=app_code(secret))).answer
    assert "code" in walk.to_second(prompt="login").answer
    page = another(walk).to_second()
    assert ("Confirm that it is you" in page.text, "Do not ask again" in page.text) == (True, False)
