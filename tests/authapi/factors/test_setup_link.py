"""`/u/factor-setup`: a link that sets up a second factor. What the link allows, for which user and how often, and what it never allows."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone

from authapi.accounts.setup_links import PATH, create_setup_link
from authapi.factors.settings import remembered_factors
from authapi.models import AccountTicket, FactorChallenge, Session, SignIn
from events.models import Event
from identity.factors.user_factors import remove_all_factors
from identity.hosts import default_address
from identity.models import AuditEntry, EnrolledFactor, Tenant, User
from identity.services.users import delete_user, update_user
from tests.authapi.browser import Browser, Page
from tests.authapi.factors.test_enrolment_page import secret_on, waits_for_lock
from tests.authapi.factors.walks import (
    NUMBER,
    app_code,
    devices_of,
    give_address,
    give_app,
    messages_of,
    notices_of,
    sent_code,
    set_factors,
)
from tests.authapi.passwordless.messages import wrong
from tests.authapi.protocols.account.test_adding import options_on
from tests.config.two_tenants import make_other_tenant
from tests.deadlines import eventually
from tests.factories.authenticator import Authenticator
from tests.factories.sign_in import people, person

ALL = ("otp", "sms", "email", "webauthn-roaming", "webauthn-platform")
EXPIRED, USED = "This link has expired", "This link has already been used"


@pytest.fixture
def ada(tenant: Tenant) -> Iterator[User]:
    """A user without a factor. The tenant offers all factors."""
    set_factors(tenant, *ALL, policy="on-request")
    with override_settings(SMS_SENDER={"kind": "console"}):
        yield person(people(tenant), email="ada@example.test")
        remembered_factors.clear()


def secret_for(user: User, **how: Any) -> str:
    link = create_setup_link(user=user, **how)
    assert link.address.startswith(f"{default_address(user.tenant_id)}{PATH}?ticket=")
    return link.address.partition("?ticket=")[2]


def opened(browser: Browser, secret: str, **named: str) -> Page:
    return browser.get(PATH, {"ticket": secret, **named})


def chosen(browser: Browser, secret: str, kind: str) -> Page:
    """Choose a kind of factor, and return its page."""
    return browser.follow(browser.post(PATH, {"ticket": secret, "at": "", "kind": kind}))


def sent(browser: Browser, secret: str, at: str, **fields: str) -> Page:
    return browser.post(PATH, {"ticket": secret, "at": at, **fields})


def set_up_app(browser: Browser, secret: str) -> Page:
    key = secret_on(chosen(browser, secret, "totp"))
    return sent(browser, secret, "totp", code=app_code(key))


# --- What a link allows -------------------------------------------------------------------------------------------------------


def test_a_link_sets_up_an_app_once_and_shows_the_recovery_code_once(tenant: Tenant, ada: User) -> None:
    browser, secret = Browser(tenant), secret_for(ada)
    page = opened(browser, secret)
    assert (page.status, page.headers["referrer-policy"], page.headers["cache-control"]) == (200, "no-referrer", "no-store")
    assert f"your account at {tenant.pk}" in page.text
    assert "a…@example.test" in page.text
    assert "ada@example.test" not in page.text
    done = set_up_app(browser, secret)
    assert done.status == 200
    assert "Second factor set up" in done.text
    assert "This is your new recovery code. Write it down now: it is not shown again." in done.text
    assert (devices_of(ada), notices_of(tenant)) == (["totp"], ["added"])
    again = opened(browser, secret)
    assert (again.status, USED in again.text, "recovery code" in again.text) == (410, True, False)
    assert sent(browser, secret, "totp", code="000000").status == 410


def test_a_setup_is_recorded_and_reported_like_any_other_setup(tenant: Tenant, ada: User) -> None:
    browser = Browser(tenant, address="198.51.100.7")
    set_up_app(browser, secret_for(ada))
    events = [json.loads(bytes(one.body))["data"] for one in Event.objects.filter(tenant_id=tenant.pk, type="user.updated")]
    assert events[-1]["object"]["multifactor"] == ["guardian"]
    assert events[-1]["context"]["request"]["ip"] == "198.51.100.7"
    entry = AuditEntry.objects.filter(tenant_id=tenant.pk, act="Added a second factor").latest("pk")
    assert (entry.actor_kind, entry.actor_id) == ("user", ada.user_id)
    assert SignIn.objects.of(tenant.pk).filter(type="gd_enrollment_complete").count() == 1


def test_opening_a_link_changes_nothing(tenant: Tenant, ada: User) -> None:
    secret = secret_for(ada)
    give_address(ada, "phone", NUMBER)
    adding = secret_for(ada, adds=True)
    models = (AccountTicket, EnrolledFactor, Session)

    def rows() -> list[Any]:
        return [list(model.objects.of(tenant.pk).order_by("pk").values()) for model in models]

    before = rows()
    for _ in range(3):
        for one in (secret, adding):
            opened(Browser(tenant), one)
            Browser(tenant).send("HEAD", f"{PATH}?ticket={one}")
    assert rows() == before
    assert messages_of(tenant) == []
    assert FactorChallenge.objects.of(tenant.pk).count() == 0


def test_a_link_opens_no_session(tenant: Tenant, ada: User) -> None:
    browser = Browser(tenant)
    set_up_app(browser, secret_for(ada))
    assert set(browser.cookies) == {"browser"}
    assert Session.objects.of(tenant.pk).count() == 0


def test_a_phone_is_set_up_with_the_code_that_it_received(tenant: Tenant, ada: User) -> None:
    browser, secret = Browser(tenant), secret_for(ada)
    assert "Text me a code" in chosen(browser, secret, "phone").text
    assert sent(browser, secret, "phone", phone_number="12").status == 400
    page = browser.follow(sent(browser, secret, "phone", phone_number=NUMBER))
    assert "Use another phone number" in page.text
    assert sent(browser, secret, "phone", again="1").status == 429
    assert "Text me a code" in chosen(browser, secret, "phone").text
    assert sent(browser, secret, "phone", code=wrong(sent_code(tenant))).status == 400
    assert sent(browser, secret, "phone", code=sent_code(tenant)).status == 200
    assert devices_of(ada) == ["phone"]


def test_mailed_codes_are_sent_only_to_the_address_of_the_profile(tenant: Tenant, ada: User) -> None:
    browser, secret = Browser(tenant), secret_for(ada)
    browser.post(PATH, {"ticket": secret, "at": "", "kind": "email", "address": "eve@example.test", "email": "eve@example.test"})
    assert [job.parameters["to"] for job in messages_of(tenant)] == ["a…@example.test"]
    assert sent(browser, secret, "email", code=sent_code(tenant)).status == 200
    assert EnrolledFactor.objects.of(tenant.pk).get(kind="email").address == "ada@example.test"


def test_a_key_can_be_set_up_and_its_challenge_is_accepted_once(tenant: Tenant, ada: User) -> None:
    browser, secret = Browser(tenant), secret_for(ada, kind="webauthn-roaming")
    key = Authenticator(origin=f"http://{browser.host}", rp_id=browser.host, verifies=False)
    page = chosen(browser, secret, "webauthn-roaming")
    assert "Choose another method" not in page.text
    made = key.made(options_on(page))
    assert sent(browser, secret, "webauthn-roaming", credential="{}").status == 400
    assert sent(browser, secret, "webauthn-roaming", credential=made).status == 400
    made = key.made(options_on(opened(browser, secret, at="webauthn-roaming")))
    assert sent(browser, secret, "webauthn-roaming", credential=made).status == 200
    assert devices_of(ada) == ["webauthn-roaming"]


# --- What a link does not allow -----------------------------------------------------------------------------------------------


def reset_factors(user: User) -> None:
    give_address(user, "phone", NUMBER)
    remove_all_factors(tenant_id=user.tenant_id, user_id=user.user_id)


def changed(user: User, **changes: Any) -> None:
    update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes=changes)


ENDS: dict[str, Callable[[User], object]] = {
    "the user is blocked": lambda user: changed(user, blocked=True),
    "the user is deleted": lambda user: delete_user(tenant_id=user.tenant_id, user_id=user.user_id),
    "the address changes": lambda user: changed(user, email="other@example.test"),
    "the password changes": lambda user: changed(user, password="Quite-Another-Horse-2"),
    "the factor is switched off": lambda user: set_factors(user.tenant, "sms", "email"),
    "another factor is enrolled": lambda user: give_address(user, "phone", NUMBER),
    "another factor is removed": reset_factors,
    "the link expires": lambda user: AccountTicket.objects.of(user.tenant_id).update(expires_at=timezone.now()),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_setup_link_ends_after_each_of_these_changes(tenant: Tenant, ada: User, end: str) -> None:
    secret, browser = secret_for(ada, kind="totp"), Browser(tenant)
    key = secret_on(chosen(browser, secret, "totp"))
    ENDS[end](ada)
    for page in (opened(browser, secret), sent(browser, secret, "totp", code=app_code(key)), sent(browser, secret, "", kind="totp")):
        assert (page.status, EXPIRED in page.text) == (410, True)
    assert "totp" not in devices_of(ada)


def test_a_link_of_another_tenant_or_for_another_purpose_opens_no_page(tenant: Tenant, ada: User) -> None:
    other = make_other_tenant()
    set_factors(other, *ALL)
    secret = secret_for(ada)
    for page in (
        opened(Browser(other), secret),
        sent(Browser(other), secret, "", kind="totp"),
        opened(Browser(tenant), "unknown"),
        opened(Browser(tenant), ""),
    ):
        assert (page.status, EXPIRED in page.text) == (410, True)
    assert Browser(tenant).get("/u/reset-password", {"ticket": secret}).status == 404
    assert Browser(tenant).post("/u/unblock", {"ticket": secret}).status == 404
    assert EnrolledFactor.all_tenants.filter(tenant_id__in=[tenant.pk, other.pk]).count() == 0


def test_a_browser_cannot_confirm_a_setup_that_another_browser_began_with_the_same_link(tenant: Tenant, ada: User) -> None:
    mine, thief, secret = Browser(tenant), Browser(tenant, address="192.0.2.99"), secret_for(ada)
    key = secret_on(chosen(mine, secret, "totp"))
    assert 'class="key"' not in opened(thief, secret, at="totp").text
    assert sent(thief, secret, "totp", code=app_code(key)).status == 409
    planted = secret_on(chosen(thief, secret, "totp"))
    # The setup of the second browser has replaced the first setup. The first browser can confirm neither of the two setups.
    for browser, code in ((mine, app_code(key)), (mine, app_code(planted))):
        assert sent(browser, secret, "totp", code=code).status == 409
    assert devices_of(ada) == []
    assert set_up_app(mine, secret).status == 200


def test_a_link_for_one_factor_cannot_set_up_another_factor(tenant: Tenant, ada: User) -> None:
    browser, secret = Browser(tenant), secret_for(ada, kind="totp")
    page = opened(browser, secret)
    assert ("Authenticator app" in page.text, "Code by text message" in page.text) == (True, False)
    assert sent(browser, secret, "", kind="phone").location == f"{PATH}?ticket={secret}"
    sent(browser, secret, "phone", phone_number=NUMBER)
    assert (messages_of(tenant), EnrolledFactor.objects.of(tenant.pk).count()) == ([], 0)


def test_wrong_codes_are_counted_for_the_user(tenant: Tenant, ada: User) -> None:
    browser, secret = Browser(tenant), secret_for(ada)
    key = secret_on(chosen(browser, secret, "totp"))
    statuses = [sent(browser, secret, "totp", code=wrong(app_code(key))).status for _ in range(6)]
    assert statuses == [400] * 5 + [429]
    assert sent(browser, secret, "totp", code=app_code(key)).status == 429
    assert devices_of(ada) == []


# --- A user who has a factor --------------------------------------------------------------------------------------------------


def test_a_user_must_prove_an_existing_factor_before_a_link_sets_up_another(tenant: Tenant, ada: User) -> None:
    key, _ = give_app(ada)
    browser, secret = Browser(tenant), secret_for(ada, adds=True)
    assert "Confirm that it is you" in opened(browser, secret).text
    for page in (
        sent(browser, secret, "", kind="phone"),
        sent(browser, secret, "phone", phone_number=NUMBER),
        sent(browser, secret, "phone", code="123456"),
        opened(browser, secret, at="phone"),
    ):
        assert "Confirm that it is you" in page.text
    assert (messages_of(tenant), devices_of(ada)) == ([], ["totp"])
    assert sent(browser, secret, "", method="totp", code=wrong(app_code(key))).status == 400
    listed = browser.follow(sent(browser, secret, "", method="totp", code=app_code(key, steps=1)))
    assert "Code by text message" in listed.text
    browser.follow(sent(browser, secret, "phone", phone_number=NUMBER))
    done = sent(browser, secret, "phone", code=sent_code(tenant))
    assert (done.status, "recovery code" in done.text) == (200, False)
    assert devices_of(ada) == ["phone", "totp"]


def test_the_proof_of_a_factor_is_valid_for_ten_minutes_in_its_browser(tenant: Tenant, ada: User) -> None:
    key, _ = give_app(ada)
    mine, thief, secret = Browser(tenant), Browser(tenant, address="192.0.2.99"), secret_for(ada, adds=True)
    mine.follow(sent(mine, secret, "", method="totp", code=app_code(key, steps=1)))
    assert "Protect your account" in opened(mine, secret).text
    assert "Confirm that it is you" in opened(thief, secret).text
    assert "Confirm that it is you" in sent(thief, secret, "phone", phone_number=NUMBER).text
    with time_machine.travel(timezone.now() + timedelta(minutes=11)):
        assert "Confirm that it is you" in opened(mine, secret).text


def test_a_code_to_prove_a_factor_is_sent_only_on_request(tenant: Tenant, ada: User) -> None:
    give_address(ada, "phone", NUMBER)
    give_app(ada)
    browser, secret = Browser(tenant), secret_for(ada, adds=True)
    device = EnrolledFactor.objects.of(tenant.pk).get(kind="phone").device
    page = opened(browser, secret, method=device)
    assert ("Send a code" in page.text, NUMBER in page.text, messages_of(tenant)) == (True, False, [])
    assert "Choose a method" in opened(browser, secret, method="list").text
    again = browser.follow(sent(browser, secret, "", method=device, again="1"))
    assert "Another message is on its way." in again.text
    assert sent(browser, secret, "", method=device, again="1").status == 429
    assert sent(browser, secret, "", method=device, code="").status == 400
    proven = sent(browser, secret, "", method=device, code=sent_code(tenant))
    assert "Protect your account" in browser.follow(proven).text


def test_a_recovery_code_is_not_accepted_as_proof_of_a_factor(tenant: Tenant, ada: User) -> None:
    _, code = give_app(ada)
    browser, secret = Browser(tenant), secret_for(ada, adds=True)
    assert sent(browser, secret, "", method="recovery-code", code=code).status == 400
    assert "Confirm that it is you" in opened(browser, secret).text


def test_a_user_whose_factors_cannot_be_verified_cannot_set_up_a_factor(tenant: Tenant, ada: User) -> None:
    give_app(ada)
    secret = secret_for(ada, adds=True)
    set_factors(tenant, "sms")
    page = opened(Browser(tenant), secret)
    assert (page.status, "None of your methods can be used right now." in page.text) == (503, True)
    sent(Browser(tenant), secret, "phone", phone_number=NUMBER)
    assert (messages_of(tenant), devices_of(ada)) == ([], ["totp"])


def test_a_link_requires_the_proof_of_a_factor_that_was_enrolled_later(tenant: Tenant, ada: User) -> None:
    browser, secret = Browser(tenant), secret_for(ada, adds=True)
    key = secret_on(chosen(browser, secret, "totp"))
    give_address(ada, "phone", NUMBER)
    page = sent(browser, secret, "totp", code=app_code(key))
    assert "Confirm that it is you" in page.text
    assert devices_of(ada) == ["phone"]


# --- Simultaneous requests ----------------------------------------------------------------------------------------------------


def test_only_one_of_two_simultaneous_confirmations_succeeds(tenant: Tenant, ada: User) -> None:
    browser, secret = Browser(tenant), secret_for(ada)
    key = secret_on(chosen(browser, secret, "totp"))
    other, second = Browser(tenant), secret_for(ada, adds=True)
    chosen(other, second, "phone")
    sent(other, second, "phone", phone_number=NUMBER)
    code, pages = sent_code(tenant), []

    def confirm(at: Browser, link: str, kind: str, typed: str) -> None:
        try:
            pages.append(sent(at, link, kind, code=typed))
        finally:
            connection.close()

    threads = [
        threading.Thread(target=confirm, args=(browser, secret, "totp", app_code(key))),
        threading.Thread(target=confirm, args=(other, second, "phone", code)),
    ]
    with transaction.atomic():
        User.objects.of(tenant.pk).select_for_update().get(pk=ada.pk)
        for thread in threads:
            thread.start()
        eventually(waits_for_lock)
    for thread in threads:
        thread.join(timeout=20)
    assert sorted(page.status for page in pages) == [200, 410]
    assert len(devices_of(ada)) == 1
