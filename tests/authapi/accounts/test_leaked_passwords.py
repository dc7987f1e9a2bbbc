"""Breached passwords at logins, sign-ups and changes: what an attacker can learn, which users and administrators get mails, and how often
they get mails."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core import mail

from authapi import tasks  # noqa: F401  (the import registers what the jobs do)
from authapi.accounts.attack_notices import send_due_notices
from authapi.accounts.attempts import Refusal
from authapi.models import AttackNotice, LoginFailures, SignIn
from identity.models import Connection, Job, PasswordCredential, User
from identity.services.jobs import run_job
from identity.services.passwords import set_password
from identity.services.profile_rules import PasswordTooWeak, check_password
from tests.authapi.accounts.logging_in import WRONG, attempt, last_line, outcome
from tests.authapi.accounts.test_dbconnections import post as post_to_directory
from tests.authapi.accounts.test_dbconnections import signup_form
from tests.authapi.accounts.test_pages import opened, reset_link
from tests.authapi.accounts.test_pages import set_password as set_on_page
from tests.authapi.api.conftest import api  # noqa: F401  (this fixture is used here, too)
from tests.authapi.login.conftest import Login
from tests.factories.admin import new_staff
from tests.factories.breach_list import detect, use_list, write_list
from tests.factories.sign_in import PASSWORD, person
from tests.management import Management, segment

BEGIN = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
# Another password in the list of breached passwords.
OTHER = "Another-Leaked-Password-3"
BLOCK = ["block"]


@pytest.fixture(scope="module")
def breach_list(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_list(tmp_path_factory.mktemp("breaches") / "list", PASSWORD, OTHER, WRONG)


@pytest.fixture(autouse=True)
def _listed(breach_list: Path, settings: Any) -> Iterator[None]:
    use_list(settings, breach_list)
    yield
    use_list(settings, "")


def stages(*, sign_up: list[str] | None = None, change: list[str] | None = None) -> dict[str, Any]:
    return {"pre-user-registration": {"shields": sign_up or []}, "pre-change-password": {"shields": change or []}}


def types(tenant_id: str) -> list[str]:
    return list(SignIn.objects.of(tenant_id).order_by("created_at", "pk").values_list("type", flat=True))


def run_mails(tenant_id: str) -> None:
    for job in Job.objects.of(tenant_id).filter(type=Job.Type.LEAKED_PASSWORD_EMAIL, status=Job.Status.PENDING):
        assert run_job(job.pk)


def test_a_wrong_breached_password_gets_the_same_answer_as_any_wrong_password(ada: User, connection: Connection) -> None:
    detect(ada.tenant_id, "block", "user_notification", "admin_notification")
    # `WRONG` is also in the list of breached passwords.
    assert outcome(attempt(connection, password=WRONG)) is Refusal.WRONG_CREDENTIALS
    assert outcome(attempt(connection, "nobody@example.test")) is Refusal.WRONG_CREDENTIALS
    assert types(ada.tenant_id) == ["fp", "fu"]
    assert not Job.objects.of(ada.tenant_id).exists()
    assert not AttackNotice.objects.of(ada.tenant_id).exists()


def test_a_refused_breached_password_does_not_change_the_count_of_failures(ada: User, connection: Connection) -> None:
    outcome(attempt(connection, password=WRONG))
    detect(ada.tenant_id, *BLOCK)
    assert outcome(attempt(connection)) is Refusal.PASSWORD_LEAKED
    line = last_line(ada.tenant_id)
    assert (line.type, line.is_success, line.user_id) == ("pwd_leak", False, ada.user_id)
    assert PASSWORD not in str(SignIn.objects.of(ada.tenant_id).values())
    assert LoginFailures.objects.of(ada.tenant_id).get().count == 1
    assert User.objects.of(ada.tenant_id).get(pk=ada.pk).logins_count == 0


def test_a_breached_password_is_refused_only_if_a_list_exists_and_blocking_is_on(ada: User, connection: Connection, settings: Any) -> None:
    assert outcome(attempt(connection)) == ada
    assert types(ada.tenant_id) == ["s"]
    detect(ada.tenant_id)
    assert outcome(attempt(connection)) == ada
    assert types(ada.tenant_id)[1:] == ["pwd_leak", "s"]
    assert SignIn.objects.of(ada.tenant_id).get(type="pwd_leak").is_success
    detect(ada.tenant_id, *BLOCK)
    use_list(settings, "")
    assert outcome(attempt(connection)) == ada


def test_a_user_gets_one_mail_about_each_breached_password(ada: User, connection: Connection) -> None:
    detect(ada.tenant_id, "block", "user_notification")
    for _ in range(3):
        assert outcome(attempt(connection, ip="203.0.113.9")) is Refusal.PASSWORD_LEAKED
    run_mails(ada.tenant_id)
    assert [message.to for message in mail.outbox] == [["ada@example.test"]]
    said = str(mail.outbox[0].body)
    assert "stolen from other services" in said
    assert "/u/reset-password?ticket=" in said
    assert PASSWORD not in said
    set_password(ada, OTHER)
    assert outcome(attempt(connection, password=OTHER)) is Refusal.PASSWORD_LEAKED
    run_mails(ada.tenant_id)
    assert len(mail.outbox) == 2
    assert not any(PASSWORD in str(job.parameters) or OTHER in str(job.parameters) for job in Job.objects.of(ada.tenant_id))


def test_a_user_gets_no_second_mail_after_a_rehash_of_the_same_password(ada: User, connection: Connection) -> None:
    detect(ada.tenant_id, "user_notification")
    assert outcome(attempt(connection)) == ada
    PasswordCredential.objects.filter(user=ada).update(password_hash=PasswordCredential.objects.get(user=ada).password_hash)
    assert outcome(attempt(connection)) == ada
    assert Job.objects.of(ada.tenant_id).filter(type=Job.Type.LEAKED_PASSWORD_EMAIL).count() == 1


def test_a_user_without_an_address_gets_no_mail(connection: Connection) -> None:
    connection.options = {**connection.options, "requires_username": True}
    connection.save()
    nameless = person(connection, email=None, email_verified=False, username="nameless")
    detect(nameless.tenant_id, "user_notification")
    assert outcome(attempt(connection, "nameless")) == nameless
    assert not Job.objects.of(nameless.tenant_id).exists()


def test_administrators_get_one_mail_per_period_for_any_number_of_logins(ada: User, connection: Connection) -> None:
    admin = new_staff(ada.tenant)
    detect(ada.tenant_id, "admin_notification", admin_notification_frequency=["weekly", "daily"])
    with time_machine.travel(BEGIN, tick=False) as clock:
        for _ in range(3):
            outcome(attempt(connection))
        send_due_notices()
        send_due_notices()
        assert [message.to for message in mail.outbox] == [[admin.email]]
        assert "Logins           3" in str(mail.outbox[0].body)
        assert "ada@example.test" not in str(mail.outbox[0].body)
        clock.shift(timedelta(hours=1))
        outcome(attempt(connection))
        send_due_notices()
        assert len(mail.outbox) == 1
        clock.shift(timedelta(hours=23, minutes=1))
        send_due_notices()
        assert "Logins           1" in str(mail.outbox[1].body)
        # The notice of this login waits for the next day. Then the tenant requests immediate notices, so the waiting notice is due, too.
        outcome(attempt(connection))
        detect(ada.tenant_id, "admin_notification", admin_notification_frequency=["immediately"])
        outcome(attempt(connection))
        clock.shift(timedelta(minutes=6))
        send_due_notices()
        assert len(mail.outbox) == 3


def test_the_login_page_offers_a_password_reset_by_mail(login: Login) -> None:
    detect(login.tenant.pk, *BLOCK)
    answer = login.log_in(login.ask())
    assert answer.status == 400
    assert "This password appeared in a data leak elsewhere. Reset it to continue." in answer.text
    assert not login.browser.cookies.get("session")
    link = reset_link(login)
    assert set_on_page(login, link, "Fresh-Horse-Staple-9").status == 200
    assert "code" in login.log_in(login.ask(), password="Fresh-Horse-Staple-9").answer


def test_a_reset_link_stays_valid_if_the_new_password_is_refused_as_breached(login: Login) -> None:
    detect(login.tenant.pk, stage=stages(change=BLOCK))
    link = reset_link(login)
    refused = set_on_page(login, link, OTHER)
    assert refused.status == 400
    assert "This password appeared in a data leak elsewhere. Choose another one." in refused.text
    line = last_line(login.tenant.pk)
    assert (line.type, line.is_success, line.user_id) == ("reset_pwd_leak", False, login.user.user_id)
    assert set_on_page(login, link, "Fresh-Horse-Staple-9").status == 200
    detect(login.tenant.pk, stage=stages(change=["admin_notification"]))
    assert set_on_page(login, reset_link(login), OTHER).status == 200
    assert "reset_pwd_leak" in types(login.tenant.pk)[-2:]
    assert AttackNotice.objects.of(login.tenant.pk).get().due_at is not None


def test_a_refused_sign_up_with_a_breached_password_reveals_no_account(login: Login) -> None:
    detect(login.tenant.pk, stage=stages(sign_up=BLOCK))
    page = opened(login, "Sign up")
    for email in ("new@example.test", "ada@example.test"):
        answer = login.browser.post("/u/signup", {**page.fields(), "email": email, "password": OTHER})
        assert answer.status == 400
        assert "This password appeared in a data leak elsewhere. Choose another one." in answer.text
        assert types(login.tenant.pk)[-2:] == ["fs", "signup_pwd_leak"]
    body = signup_form(login.client, password=OTHER)
    refused = post_to_directory(login.tenant, "signup", body)
    assert (refused.status, refused.json()["code"], refused.json()["name"]) == (400, "password_leaked", "PasswordBreachedError")
    assert User.objects.of(login.tenant.pk).count() == 1
    detect(login.tenant.pk, stage=stages(sign_up=["admin_notification"]))
    assert post_to_directory(login.tenant, "signup", body).status == 200
    assert types(login.tenant.pk)[-2:] == ["ss", "signup_pwd_leak"]


def test_the_management_interface_and_staff_pages_refuse_breached_passwords(
    api: Management,  # noqa: F811  (the fixture)
    ada: User,
    connection: Connection,
) -> None:
    detect(ada.tenant_id, stage=stages(sign_up=BLOCK, change=BLOCK))
    created = api.post("users", {"connection": "people", "email": "new@example.test", "password": OTHER})
    changed = api.patch(f"users/{segment(ada.user_id)}", {"password": OTHER})
    for answer in (created, changed):
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
        assert answer.json["message"].startswith("PasswordBreachedError")
        assert OTHER not in answer.body.decode()
    with pytest.raises(PasswordTooWeak):
        check_password(connection, OTHER, {}, user=ada)
    detect(ada.tenant_id, stage=stages(sign_up=BLOCK))
    assert api.patch(f"users/{segment(ada.user_id)}", {"password": OTHER}).status == 200
