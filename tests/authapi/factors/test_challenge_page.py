"""`/u/mfa`: which answers are refused and which are accepted."""

from __future__ import annotations

import threading
import time

import pytest
import time_machine
from django.db import connection
from django.test import override_settings

from authapi.login.sessions import end_sessions_of
from authapi.models import Initiator, LoginTransaction, Session
from identity.messages.numbers import masked_number
from identity.models import EnrolledFactor, Job
from identity.services.memberships import add_connection, add_members
from identity.services.organizations import create_organization
from identity.services.users import block_user
from tests.authapi.browser import Page
from tests.authapi.factors.walks import (
    NUMBER,
    Walk,
    another,
    app_code,
    give_address,
    give_app,
    give_key,
    login,  # noqa: F401  (used by `walk`)
    messages_of,
    notices_of,
    sent_code,
    set_factors,
    walk,
)
from tests.authapi.login.conftest import set_client
from tests.authapi.passwordless.messages import wrong
from tests.factories.models.authapi import OrganizationSecondFactorsFactory
from tests.factories.sign_in import PASSWORD, person, web_client

__all__ = ["walk"]
ASKS = "Confirm that it is you"


def test_only_the_correct_code_of_the_user_is_accepted_and_only_once(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp")
    secret, _ = give_app(walk.at.user)
    foreign, _ = give_app(person(walk.at.connection, email="eve@example.test"))
    page = walk.to_second()
    assert ASKS in page.text
    for typed, told in (
        ("", "Enter the code from the app."),
        (app_code(foreign), "wrong or was used already"),
        ("x" * 500, "is wrong"),
    ):
        refused = walk.browser.submit(page, code=typed)
        assert (refused.status, told in refused.text) == (400, True)
        assert not [one for one in Session.objects.of(walk.at.tenant.pk) if len(one.methods) > 1]
    code = app_code(secret)
    answer = walk.browser.submit(page, code=f"{code[:3]} {code[3:]}")
    assert "code" in answer.answer
    [session] = Session.objects.of(walk.at.tenant.pk)
    assert [method["name"] for method in session.methods] == ["pwd", "mfa", "otp"]
    # Another browser, in which the password was entered too, sends the same code.
    other = another(walk)
    assert other.browser.submit(other.to_second(), code=code).status == 400


def test_only_one_of_two_simultaneous_answers_with_one_code_is_accepted(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp")
    secret, _ = give_app(walk.at.user)
    walks = [walk, another(walk)]
    pages, code = [one.to_second() for one in walks], app_code(secret)
    barrier, found = threading.Barrier(2), []

    def give(number: int) -> None:
        barrier.wait()
        found.append(walks[number].browser.submit(pages[number], code=code).status)
        connection.close()

    threads = [threading.Thread(target=give, args=(number,)) for number in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(found) == [303, 400]


def test_guesses_from_all_ip_addresses_share_a_limit_but_a_known_browser_still_works(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp")
    secret, _ = give_app(walk.at.user)
    assert "code" in walk.browser.submit(walk.to_second(), code=app_code(secret)).answer
    statuses = []
    for place in range(11):
        thief = another(walk, address=f"198.51.100.{place}")
        page = thief.to_second()
        # A half-proven login does not make the browser a known browser.
        assert "known" not in thief.browser.cookies
        statuses.append(thief.browser.submit(page, code=wrong(app_code(secret))).status)
    assert statuses == [400] * 10 + [429]
    assert "code" in walk.browser.submit(walk.to_second(prompt="login"), code=app_code(secret, steps=1)).answer


def test_no_page_and_no_request_bypasses_a_required_second_factor(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp")
    secret, _ = give_app(walk.at.user)
    page = walk.to_second()
    state = page.fields()["state"]
    for path in ("/u/consent", "/u/select-account", "/u/organization", "/u/mfa-enroll", "/u/mfa/recovery-code", "/u/mfa"):
        assert ASKS in walk.followed(walk.browser.get(path, {"state": state})).text, path
    posted = walk.browser.post("/u/consent", {**page.fields(), "answer": "allow"}, Origin=f"http://{walk.browser.host}")
    assert posted.location.startswith("/u/mfa?")
    enrolling = walk.browser.post("/u/mfa-enroll", {**page.fields(), "kind": "totp"}, Origin=f"http://{walk.browser.host}")
    assert enrolling.location.startswith("/u/mfa?")
    # Further authorization requests, even those of another client, find the half-proven session.
    assert ASKS in walk.again().text
    silent = walk.at.ask(prompt="none")
    assert (silent.answer["error"], silent.answer["error_description"]) == ("login_required", "Multifactor authentication required")
    other, _ = web_client(walk.at.tenant)
    enabled = [walk.at.client.client_id, other.client_id]
    walk.at.connection.enabled_clients = enabled
    walk.at.connection.save(update_fields=["enabled_clients"])
    walk.at.client = other
    asked = walk.again()
    assert ASKS in asked.text
    assert "code" in walk.browser.submit(asked, code=app_code(secret)).answer
    set_client(walk.at, settings={"second_factor_policy": "always"})
    assert "code" in walk.again().answer


def test_a_session_that_ended_or_was_replaced_proves_no_second_factor(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp")
    secret, _ = give_app(walk.at.user)
    page = walk.to_second()
    end_sessions_of(tenant_id=walk.at.tenant.pk, user_id=walk.at.user.pk, reason=Initiator.SESSION_REVOKED)
    assert "Log in" in walk.give(page, code=app_code(secret)).text
    page = walk.to_second()
    other = person(walk.at.connection, email="eve@example.test")
    other_secret, _ = give_app(other)
    # Another user logs in, in another tab of this browser. The form of the first user then proves no factor of the second user.
    walk.followed(walk.at.log_in(walk.at.ask(prompt="login"), identifier="eve@example.test"))
    answer = walk.browser.submit(page, code=app_code(other_secret))
    assert (answer.status, ASKS in answer.text) == (200, True)
    page = walk.to_second(prompt="login")
    block_user(tenant_id=walk.at.tenant.pk, user_id=walk.at.user.user_id)
    assert "Log in" in walk.give(page, code=app_code(secret)).text
    assert not Session.objects.of(walk.at.tenant.pk).filter(user=walk.at.user).exists()


def test_a_cookie_planted_before_the_second_step_is_invalid_after_that_step(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp")
    secret, _ = give_app(walk.at.user)
    page = walk.to_second()
    thief = another(walk)
    thief.browser.cookies["session"] = walk.browser.cookies["session"]
    assert ASKS in thief.again().text
    assert "code" in walk.browser.submit(page, code=app_code(secret)).answer
    assert "Log in" in thief.again().text
    assert "code" in walk.again().answer


def test_the_policy_of_an_organization_chosen_after_the_login_applies(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp")
    at = walk.at
    organization = create_organization(tenant_id=at.tenant.pk, name="acme")
    add_connection(tenant_id=at.tenant.pk, organization_id=organization.pk, connection_id=at.connection.pk)
    add_members(tenant_id=at.tenant.pk, organization_id=organization.pk, user_ids=[at.user.user_id])
    OrganizationSecondFactorsFactory.create(organization=organization)
    set_client(at, settings={"organization_usage": "allow", "organization_require_behavior": "post_login_prompt"})
    page = walk.to_second()
    assert "Choose an organization" in page.text
    assert "Protect your account" in walk.give(page, answer=organization.pk).text
    # Without the organization, no second factor is required.
    assert "code" in walk.give(walk.to_second(prompt="login"), answer="none").answer


def sent_page(walk: Walk, kind: str = "phone", address: str = NUMBER) -> Page:
    set_factors(walk.at.tenant, "sms", "email", "otp")
    give_address(walk.at.user, kind, address)
    return walk.to_second()


def test_a_second_code_is_sent_only_on_request_and_only_after_a_pause(walk: Walk) -> None:
    page = sent_page(walk)
    state = page.fields()["state"]
    for _ in range(3):
        assert masked_number(NUMBER) in walk.browser.get("/u/mfa", {"state": state}).text
    assert NUMBER not in page.text
    assert len(messages_of(walk.at.tenant)) == 1
    assert walk.browser.submit(page, again="1").status == 429
    first = sent_code(walk.at.tenant)
    with time_machine.travel(time.time() + 31):
        assert "Another message is on its way." in walk.give(page, again="1").text
        assert len(messages_of(walk.at.tenant)) == 2
        # The code of a delayed message is still accepted.
        assert "code" in walk.browser.submit(page, code=first).answer


def test_a_prefetched_page_sends_no_code(walk: Walk) -> None:
    set_factors(walk.at.tenant, "sms")
    give_address(walk.at.user, "phone", NUMBER)
    answer = walk.at.log_in(walk.at.ask())
    page = walk.browser.send("GET", answer.location, headers={"Sec-Purpose": "prefetch;prerender"})
    assert (page.status, messages_of(walk.at.tenant)) == (200, [])
    walk.browser.send("HEAD", answer.location)
    assert messages_of(walk.at.tenant) == []
    assert "We sent a code" in walk.browser.follow(answer).text


def test_a_code_is_accepted_only_for_its_own_login_and_until_it_expires(walk: Walk) -> None:
    page, thief = sent_page(walk), another(walk)
    code = sent_code(walk.at.tenant)
    theirs = thief.to_second()
    assert thief.browser.submit(theirs, code=code).status == 400
    for _ in range(3):
        assert walk.browser.submit(page, code=wrong(code)).status == 400
    assert "code" in walk.browser.submit(page, code=code).answer
    page = walk.to_second(prompt="login")
    with time_machine.travel(time.time() + 301):
        late = walk.browser.submit(page, code=sent_code(walk.at.tenant))
        assert (late.status, "wrong or has expired" in late.text) == (400, True)


def test_an_unavailable_sender_is_reported_and_the_login_does_not_continue(walk: Walk) -> None:
    sent_page(walk)
    with override_settings(SMS_SENDER={}, MAIL_IS_CONFIGURED=False):
        page = walk.to_second(prompt="login")
        assert "Recovery code" in page.text
        EnrolledFactor.objects.of(walk.at.tenant.pk).filter(kind="recovery-code").delete()
        empty = walk.to_second(prompt="login")
        assert (empty.status, "None of your methods can be used right now." in empty.text) == (503, True)
        assert walk.again().status == 503


def test_too_many_messages_are_refused_and_the_response_states_the_limit(walk: Walk) -> None:
    page = sent_page(walk)
    for number in range(1, 10):
        with time_machine.travel(time.time() + 31 * number):
            walk.browser.submit(page, again="1")
    with time_machine.travel(time.time() + 31 * 10):
        refused = walk.browser.submit(page, again="1")
    assert (refused.status, "Too many messages were requested." in refused.text) == (429, True)
    assert "x-ratelimit-limit" in refused.headers
    assert len(messages_of(walk.at.tenant)) == 10


def test_a_mailed_code_proves_the_second_factor_and_the_session_stores_the_methods(walk: Walk) -> None:
    page = sent_page(walk, kind="email", address="ada@example.test")
    assert "a…@example.test" in page.text
    assert "code" in walk.browser.submit(page, code=sent_code(walk.at.tenant)).answer
    [session] = Session.objects.of(walk.at.tenant.pk)
    assert [method["name"] for method in session.methods] == ["pwd", "mfa", "otp", "email"]


def test_a_signature_of_a_key_is_accepted_once_for_its_own_login_and_domain(walk: Walk) -> None:
    set_factors(walk.at.tenant, "webauthn-roaming")
    key = give_key(walk.at.user, walk.browser.host)
    page = walk.to_second()
    assert walk.browser.submit(page, credential="{}").status == 400
    page = walk.again()
    signed = key.signed(walk.options(page))
    thief = another(walk)
    # The signature of one login is refused in another login and in a login that starts again.
    assert thief.browser.submit(thief.to_second(), credential=signed).status == 400
    assert "code" in walk.browser.submit(page, credential=signed).answer
    page = walk.to_second(prompt="login")
    assert walk.browser.submit(page, credential=signed).status == 400
    key.origin = "http://evil.example"
    assert walk.browser.submit(walk.again(), credential=key.signed(walk.options(walk.again()))).status == 400


def test_a_recovery_code_is_accepted_once_and_the_new_code_is_shown_until_confirmed(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp")
    _, code = give_app(walk.at.user)
    page = walk.to_second()
    state = page.fields()["state"]
    listed = walk.browser.get("/u/mfa", {"state": state, "method": "list"})
    assert "Recovery code" in listed.text
    page = walk.browser.get("/u/mfa", {"state": state, "method": "recovery-code"})
    assert "Do not ask again" not in page.text
    assert walk.browser.submit(page, code="AAAAAA-AAAAAA-AAAAAA-AAAAAA").status == 400
    shown = walk.give(page, code=code.lower())
    assert "Save your recovery code" in shown.text
    assert walk.browser.submit(shown).status == 400
    again = walk.browser.get("/u/mfa/recovery-code", {"state": state})
    new = again.text.partition("<code>")[2].partition("</code>")[0]
    assert (len(new), new == code, new in shown.text) == (27, False, True)
    assert new not in str(list(LoginTransaction.objects.of(walk.at.tenant.pk).values()))
    assert "code" in walk.browser.submit(shown, saved="1").answer
    assert "trusted" not in walk.browser.cookies
    assert notices_of(walk.at.tenant)[-1] == "recovered"
    assert new not in str(list(LoginTransaction.objects.of(walk.at.tenant.pk).values()))
    used = another(walk)
    state = used.to_second().fields()["state"]
    page = used.browser.get("/u/mfa", {"state": state, "method": "recovery-code"})
    assert used.browser.submit(page, code=code).status == 400
    assert "Save your recovery code" in used.give(page, code=new).text


def test_a_new_recovery_code_is_not_shown_to_another_user_of_the_same_login(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp")
    _, code = give_app(walk.at.user)
    person(walk.at.connection, email="eve@example.test")
    state = walk.to_second().fields()["state"]
    page = walk.browser.get("/u/mfa", {"state": state, "method": "recovery-code"})
    shown = walk.give(page, code=code)
    new = shown.text.partition("<code>")[2].partition("</code>")[0]
    form = walk.browser.get("/u/login", {"state": state})
    answer = walk.followed(walk.browser.submit(form, username="eve@example.test", password=PASSWORD))
    assert "code" in answer.answer
    assert new
    assert "Save your recovery code" not in walk.browser.get("/u/mfa/recovery-code", {"state": state}).text


def test_only_one_of_two_simultaneous_uses_of_a_recovery_code_succeeds(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp")
    _, code = give_app(walk.at.user)
    walks = [walk, another(walk)]
    pages = [one.browser.get("/u/mfa", {"state": one.to_second().fields()["state"], "method": "recovery-code"}) for one in walks]
    barrier, found = threading.Barrier(2), []

    def give(number: int) -> None:
        barrier.wait()
        found.append(walks[number].browser.submit(pages[number], code=code).status)
        connection.close()

    threads = [threading.Thread(target=give, args=(number,)) for number in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(found) == [303, 400]


def test_forms_of_another_browser_and_forged_forms_are_refused(walk: Walk) -> None:
    set_factors(walk.at.tenant, "otp")
    secret, _ = give_app(walk.at.user)
    page, thief = walk.to_second(), another(walk)
    thief.to_second()
    sent = {**page.fields(), "code": app_code(secret)}
    assert thief.browser.post("/u/mfa", sent, Origin=f"http://{walk.browser.host}").status == 400
    assert walk.browser.post("/u/mfa", {**sent, "form_token": "x"}).status == 400
    assert walk.browser.post("/u/mfa", sent, Origin="https://evil.example").status == 400


def test_the_page_offers_the_last_used_method_first_or_else_the_strongest_method(walk: Walk) -> None:
    set_factors(walk.at.tenant, "sms", "otp", "webauthn-roaming")
    give_key(walk.at.user, "another-host.example.test")
    give_app(walk.at.user)
    EnrolledFactor.objects.of(walk.at.tenant.pk).update(last_used_at=None)
    give_address(walk.at.user, "phone", NUMBER)
    EnrolledFactor.objects.of(walk.at.tenant.pk).update(last_used_at=None)
    page = walk.to_second()
    # A security key that was enrolled on another domain cannot be used on this domain.
    assert "authenticator app" in page.text
    listed = walk.browser.get("/u/mfa", {"state": page.fields()["state"], "method": "list"})
    assert "Security key" not in listed.text
    phone = EnrolledFactor.objects.of(walk.at.tenant.pk).get(kind="phone").device
    page = walk.browser.get("/u/mfa", {"state": page.fields()["state"], "method": phone})
    assert "code" in walk.browser.submit(page, code=sent_code(walk.at.tenant)).answer
    assert "We sent a code" in walk.to_second(prompt="login").text


@pytest.mark.parametrize("kind", ["mfa_oob_code", "mfa_sms"])
def test_a_code_is_stored_only_in_sealed_columns(walk: Walk, kind: str) -> None:
    sent_page(walk, *(("email", "ada@example.test") if kind == "mfa_oob_code" else ("phone", NUMBER)))
    code = sent_code(walk.at.tenant)
    assert code not in str(list(Job.objects.of(walk.at.tenant.pk).values("parameters", "summary", "status_details")))
