"""Profile, email address and password: what a user can change, what stays unchanged, and how a stolen session is limited."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core import mail

from authapi.models import AdministrativeLine, RefreshToken, Session, SignIn
from authapi.services.tenant_settings import update_brute_force, update_tenant_settings
from events.models import Event
from identity.mail.verification import token_of as link_of
from identity.models import AuditEntry, EmailTicket, Job
from identity.services.jobs import run_job
from identity.services.users import update_user
from tests.authapi.browser import Browser, Page
from tests.authapi.protocols.account.conftest import Account, switch
from tests.authapi.protocols.account.conftest import token_of as form_token_of
from tests.factories.identity import make_user
from tests.factories.models.authapi import RefreshTokenFactory
from tests.factories.models.identity import ConnectionFactory
from tests.factories.sign_in import PASSWORD, person, session_of

NEW = "Another-Horse-8-Battery"
FORM: dict[str, Any] = {
    "name": "Ada King",
    "given_name": "Ada",
    "family_name": "King",
    "nickname": "countess",
    "picture": "",
    "language": "",
}


# --- Profile ------------------------------------------------------------------------------------------------------------------


def test_a_saved_profile_is_recorded_in_an_event_and_in_both_logs(account: Account) -> None:
    picture = "https://example.test/ada.png"
    page = account.send("profile", **{**FORM, "picture": picture, "user_id": "auth0|x", "email": "evil@example.test"})
    assert (page.status, page.location) == (303, "/account/profile?done=saved")
    user = account.told()
    assert (user.name, user.nickname, user.picture, user.email) == ("Ada King", "countess", picture, "ada@example.test")
    entry = AuditEntry.objects.filter(tenant_id=account.tenant.pk, object_type="identity.user").latest("pk")
    assert (entry.actor_kind, entry.actor_id, entry.act) == ("user", user.user_id, "Changed own profile")
    line = AdministrativeLine.objects.of(account.tenant.pk).latest("created_at")
    assert (line.type, line.user_id, line.user_name) == ("sapi", user.user_id, "ada@example.test")
    context = json.loads(bytes(Event.objects.filter(tenant_id=account.tenant.pk, type="user.updated").latest("pk").body))["data"]["context"]
    assert context["client"]["name"] == "Account"


def test_invalid_values_are_reported_at_their_fields_and_nothing_changes(account: Account) -> None:
    wrong = [
        {"picture": "javascript:alert(1)"},
        {"picture": "http://example.test/a.png"},
        {"name": "x" * 301},
        {"given_name": "a\x00b"},
        {"language": "tlh"},
    ]
    for changes in wrong:
        page = account.send("profile", **{**FORM, **changes})
        assert (page.status, f'href="#{next(iter(changes))}"' in page.text) == (400, True), changes
    assert account.told().name == "Ada Lovelace"


def test_the_chosen_language_is_used_and_other_metadata_is_kept(account: Account) -> None:
    update_tenant_settings(tenant_id=account.tenant.pk, changes={"enabled_locales": ["en", "de"]})
    update_user(tenant_id=account.tenant.pk, user_id=account.user.user_id, changes={"user_metadata": {"plan": "gold"}})
    assert account.send("profile", **{**FORM, "language": "de"}).status == 303
    assert account.open().headers["content-language"] == "de"
    assert account.told().user_metadata == {"plan": "gold", "lang": "de"}
    account.send("profile", **FORM)
    assert account.told().user_metadata == {"plan": "gold"}


def test_a_user_cannot_change_a_profile_that_comes_from_a_provider(account: Account) -> None:
    connection = ConnectionFactory.create(tenant_id=account.tenant.pk, name="corp", strategy="oidc", options={"client_id": "x"})
    switch(account.tenant, connections=["corp"])
    user = make_user(connection=connection, identifier="corp|7", email="eve@example.test", name="Eve")
    _, cookie = session_of(user)
    eve = Browser(account.tenant, cookies={"session": cookie})
    page = eve.get("/account/profile")
    assert ("The provider that you log in with keeps" in page.text, page.text.count("readonly")) == (True, 5)
    assert account.send("profile", browser=eve, **FORM).status == 303
    user.refresh_from_db()
    assert user.name == "Eve"
    assert [eve.get(f"/account/{name}").status for name in ("email", "password")] == [404, 404]
    assert account.send("password", browser=eve, token=_token(eve), present="x", password=NEW, repeated=NEW).status == 404


def _token(browser: Browser) -> str:
    return form_token_of(browser.get("/account/profile"))


# --- Password -----------------------------------------------------------------------------------------------------------------


def change(account: Account, present: str = PASSWORD, new: str = NEW, repeated: str | None = None) -> Page:
    return account.send("password", present=present, password=new, repeated=new if repeated is None else repeated)


def test_a_stolen_session_cannot_be_used_to_guess_the_password(account: Account) -> None:
    update_brute_force(tenant_id=account.tenant.pk, changes={"max_attempts": 2})
    pages = [change(account, present="wrong") for _ in range(2)]
    assert all("This is not your current password." in page.text for page in pages)
    blocked = change(account)
    assert (blocked.status, "too many wrong passwords" in blocked.text) == (400, True)
    assert not any(secret in page.text for page in (*pages, blocked) for secret in (PASSWORD, NEW))
    lines = SignIn.objects.of(account.tenant.pk).filter(type="fcp", user_id=account.user.user_id)
    assert lines.count() == 3


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"new": "short"}, "too weak"),
        ({"repeated": "other"}, "do not match"),
        ({"present": ""}, "Enter your current password."),
        ({"new": ""}, "Choose a password."),
    ],
)
def test_a_refused_password_changes_nothing(account: Account, form: dict[str, str], text: str) -> None:
    page = change(account, **form)
    assert (page.status, text in page.text) == (400, True)
    assert account.session is not None
    assert not SignIn.objects.of(account.tenant.pk).filter(type="scp").exists()


def test_a_new_password_ends_every_other_session_and_mailed_link(account: Account) -> None:
    other, _ = session_of(account.user)
    token = RefreshTokenFactory.create(tenant_id=account.tenant.pk, user=account.user)
    account.send("email", email="new@example.test")
    cookie, session = dict(account.browser.cookies), account.browser.cookies["session"]
    page = change(account)
    assert (page.status, page.location) == (303, "/account?done=password")
    assert "logged out everywhere else" in account.browser.follow(page).text
    # The session continues with a new cookie, and the old cookie is invalid.
    assert account.browser.cookies["session"] != session
    assert Browser(account.tenant, cookies=cookie).get("/account").status == 302
    assert not Session.objects.of(account.tenant.pk).filter(pk=other.pk).exists()
    assert RefreshToken.objects.of(account.tenant.pk).get(pk=token.pk).revoked is not None
    ticket = EmailTicket.objects.of(account.tenant.pk).get()
    assert ticket.used_at is not None
    assert account.browser.post("/u/email-verification", {"ticket": link_of(ticket)}).status == 410
    account.browser.cookies.clear()
    assert "Your account" in account.log_in(password=NEW).text


# --- Address ------------------------------------------------------------------------------------------------------------------


def ask(account: Account, email: str = "new@example.test") -> EmailTicket:
    page = account.send("email", email=email)
    assert page.location == "/account/email?done=mailed", page.text
    return EmailTicket.objects.of(account.tenant.pk).filter(used_at=None).latest("created_at")


def confirm(account: Account, ticket: EmailTicket) -> Page:
    return Browser(account.tenant).post("/u/email-verification", {"ticket": link_of(ticket)})


def test_a_new_address_takes_effect_after_its_link_is_confirmed_and_ends_sessions(account: Account) -> None:
    ticket = ask(account)
    assert account.told().email == "ada@example.test"
    page = Browser(account.tenant).get("/u/email-verification", {"ticket": link_of(ticket)})
    assert ("new@example.test" in page.text, account.told().email) == (True, "ada@example.test")
    done = confirm(account, ticket)
    assert (done.status, "/account" in done.text) == (200, True)
    user = account.told()
    assert (user.email, user.email_verified) == ("new@example.test", True)
    assert not Session.objects.of(account.tenant.pk).exists()
    assert confirm(account, ticket).status == 410
    assert SignIn.objects.of(account.tenant.pk).filter(type="sce", user_id=user.user_id).count() == 1


def test_choosing_the_address_of_another_user_gets_the_usual_answer_and_sends_no_mail(account: Account) -> None:
    person(account.connection, email="bob@example.test")
    jobs = Job.objects.of(account.tenant.pk).count()
    page = account.send("email", email="BOB@example.test")
    assert page.location == "/account/email?done=mailed"
    assert (Job.objects.of(account.tenant.pk).count(), EmailTicket.objects.of(account.tenant.pk).count()) == (jobs, 0)


def test_an_address_that_another_user_has_taken_meanwhile_cannot_be_confirmed(account: Account) -> None:
    ticket = ask(account)
    person(account.connection, email="new@example.test")
    assert confirm(account, ticket).status == 410
    assert account.told().email == "ada@example.test"


def test_a_newer_link_and_any_change_of_the_address_invalidate_a_link(account: Account) -> None:
    first, second = ask(account), ask(account, "newer@example.test")
    assert confirm(account, first).status == 410
    update_user(tenant_id=account.tenant.pk, user_id=account.user.user_id, changes={"email": "admin@example.test"})
    assert confirm(account, second).status == 410
    assert account.told().email == "admin@example.test"


def test_invalid_addresses_and_too_many_mails_are_refused(account: Account) -> None:
    for typed in ("", "nowhere", "a\x00b@example.test", "ada@example.test", f"{'x' * 250}@example.test"):
        assert account.send("email", email=typed).status == 400, typed
    for number in range(3):
        ask(account, f"new{number}@example.test")
    assert account.send("email", email="new9@example.test").status == 429


def test_changing_the_address_sends_one_mail_to_the_new_address(account: Account) -> None:
    ticket = ask(account)
    assert ticket.job is not None
    for _ in range(2):
        run_job(ticket.job.pk)
    assert [message.to for message in mail.outbox] == [["new@example.test"]]
    assert link_of(ticket) in str(mail.outbox[0].body)
