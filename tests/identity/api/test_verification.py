"""Mails that verify an email address: their recipients, and their links. Each link is valid once."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
import time_machine
from django.core import mail
from django.utils import timezone

from identity.models import Connection, EmailTicket, Job, Tenant, User
from identity.services.jobs import run_job
from identity.services.users import link_users, update_user
from tests.events.log_reading import numbered
from tests.factories.identity import make_user
from tests.factories.models.identity import ConnectionFactory
from tests.identity.sweeps import take_all_unattended_jobs
from tests.management import Answer, Management, request


def mailed_link(api: Management, body: dict[str, Any]) -> str:
    """Start the job that sends the mail, run it, and return the link in the mail."""
    answer = api.post("jobs/verification-email", body)
    assert (answer.status, answer.json["type"], answer.json["status"]) == (201, "verification_email", "pending")
    assert run_job(answer.json["id"])
    assert api.get(f"jobs/{answer.json['id']}").json["status"] == "completed"
    return link_of(mail.outbox[-1].body)


def link_of(text: object) -> str:
    return str(re.findall(r"http\S+", str(text))[0])


def visit(link: str) -> Answer:
    parts = urlsplit(link)
    return request("GET", parts.path, parts.query, {"host": parts.netloc}, b"")


def confirm(link: str) -> Answer:
    """Open the page of a link, submit its form, and return the response."""
    parts = urlsplit(link)
    ticket = re.search(r'name="ticket" value="([^"]+)"', visit(link).body.decode())
    body = urlencode({"ticket": unescape(ticket[1]) if ticket else parts.query.removeprefix("ticket=")}).encode()
    headers = {"host": parts.netloc, "content-type": "application/x-www-form-urlencoded", "content-length": str(len(body))}
    return request("POST", parts.path, "", headers, body)


def is_verified(user: User) -> bool:
    return User.objects.of(user.tenant_id).get(pk=user.pk).email_verified


def test_the_link_verifies_the_address_once_and_records_an_event(api: Management, tenant: Tenant, ada: User) -> None:
    link = mailed_link(api, {"user_id": ada.user_id})
    sent = mail.outbox[-1]
    assert (sent.to, len(mail.outbox)) == (["ada@example.test"], 1)
    assert link.startswith(f"http://{tenant.pk}.example.test/u/email-verification?ticket=")
    done = confirm(link)
    assert done.status == 200
    assert "Email address confirmed" in done.body.decode()
    assert is_verified(ada)
    updated = [event for event in numbered(tenant.pk) if event["type"] == "user.updated"]
    assert [event["data"]["object"]["email_verified"] for event in updated] == [True]
    for again in (visit(link), confirm(link)):
        assert again.status == 410
        assert "already been used" in again.body.decode()


def test_opening_the_link_verifies_nothing(api: Management, ada: User) -> None:
    link = mailed_link(api, {"user_id": ada.user_id})
    for _ in range(2):
        page = visit(link)
        assert page.status == 200
        assert "ada@example.test" in page.body.decode()
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "no-store" in page.headers["cache-control"]
    assert "unsafe-inline" not in page.headers["content-security-policy"]
    assert not is_verified(ada)


def test_expired_and_invalid_links_verify_nothing(api: Management, ada: User, database_connection: Connection) -> None:
    link = mailed_link(api, {"user_id": ada.user_id})
    with time_machine.travel(timezone.now() + timedelta(days=5, seconds=1)):
        assert confirm(link).status == 410
        assert "expired" in visit(link).body.decode()
    assert confirm(link[:-2]).status == 404
    assert visit(link.partition("?")[0]).status == 404
    assert not is_verified(ada)


def test_changing_the_address_invalidates_the_links_to_the_old_address(api: Management, ada: User) -> None:
    link = mailed_link(api, {"user_id": ada.user_id})
    update_user(tenant_id=ada.tenant_id, user_id=ada.user_id, changes={"email": "new@example.test"})
    assert confirm(link).status == 410
    assert not is_verified(ada)


def test_the_signature_in_the_link_is_not_stored(api: Management, ada: User) -> None:
    link = mailed_link(api, {"user_id": ada.user_id})
    signature = link.rpartition(":")[2]
    rows = [*EmailTicket.objects.of(ada.tenant_id).values(), *Job.objects.of(ada.tenant_id).values()]
    assert signature not in str(rows)


def test_a_linked_identity_is_verified_separately(api: Management, tenant: Tenant, ada: User) -> None:
    other = ConnectionFactory.create(tenant_id=tenant.pk, name="other", strategy=ada.connection.strategy)
    second = make_user(connection=other, email="second@example.test")
    link_users(tenant_id=tenant.pk, primary_id=ada.user_id, secondary_id=second.user_id)
    link = mailed_link(api, {"user_id": ada.user_id, "identity": {"provider": second.provider, "user_id": second.identifier}})
    assert mail.outbox[-1].to == ["second@example.test"]
    assert confirm(link).status == 200
    assert ada.linked_identities.get().profile_data["email_verified"] is True
    assert not is_verified(ada)
    assert numbered(tenant.pk)[-1]["type"] == "user.updated"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "user_id"),
        ({"user_id": "database|nobody"}, "The user does not exist."),
        ({"user_id": "ADA", "identity": {"provider": "sms", "user_id": "x"}}, "The identity is not linked"),
        ({"user_id": "ADA", "organization_id": "org_0000000000000000"}, "No organization"),
        ({"user_id": "ADA", "surplus": 1}, "surplus"),
    ],
)
def test_an_invalid_request_for_a_mail_is_refused(api: Management, ada: User, body: dict[str, Any], message: str) -> None:
    named = {**body, "user_id": ada.user_id} if body.get("user_id") == "ADA" else body
    answer = api.post("jobs/verification-email", named)
    assert answer.status == 400
    assert message in answer.json["message"]


def test_a_user_without_an_address_gets_no_mail(api: Management, database_connection: Connection) -> None:
    user = make_user(connection=database_connection, email=None, username="ada")
    assert api.post("jobs/verification-email", {"user_id": user.user_id}).status == 400


def test_the_job_fails_with_the_reason_if_there_is_no_mail_server(api: Management, ada: User, settings: Any) -> None:
    settings.MAIL_IS_CONFIGURED = False
    job = api.post("jobs/verification-email", {"user_id": ada.user_id}).json["id"]
    assert run_job(job)
    assert api.get(f"jobs/{job}").json["status_details"] == "No mail can be sent: EMAIL_URL is not set."
    assert api.get(f"jobs/{job}/errors").json["status"] == "failed"


def test_a_job_waits_for_an_unavailable_mail_server_and_sends_the_same_link(api: Management, ada: User, settings: Any) -> None:
    working = settings.EMAIL_BACKEND
    job = api.post("jobs/verification-email", {"user_id": ada.user_id}).json["id"]
    # No server listens on port 9 (discard).
    settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = "django.core.mail.backends.smtp.EmailBackend", "127.0.0.1", 9
    assert run_job(job)
    stored = Job.objects.of(ada.tenant_id).get(pk=job)
    assert (stored.failures, stored.has_effect_due) == (0, True)
    assert job not in take_all_unattended_jobs()
    ticket = EmailTicket.objects.of(ada.tenant_id).get()
    settings.EMAIL_BACKEND = working
    Job.objects.of(ada.tenant_id).filter(pk=job).update(lease_until=None)
    assert job in take_all_unattended_jobs()
    assert run_job(job)
    assert EmailTicket.objects.of(ada.tenant_id).get() == ticket
    assert confirm(link_of(mail.outbox[-1].body)).status == 200


def test_the_job_ends_after_the_mail_server_was_unavailable_for_a_day(api: Management, ada: User, settings: Any) -> None:
    job = api.post("jobs/verification-email", {"user_id": ada.user_id}).json["id"]
    Job.objects.of(ada.tenant_id).filter(pk=job).update(created_at=timezone.now() - timedelta(hours=25))
    settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = "django.core.mail.backends.smtp.EmailBackend", "127.0.0.1", 9
    assert run_job(job)
    stored = Job.objects.of(ada.tenant_id).get(pk=job)
    assert not stored.has_effect_due
    assert stored.status_details == "The provider has been unavailable for a day."


def test_a_request_that_creates_or_changes_a_user_can_send_the_mail(api: Management, database_connection: Connection) -> None:
    new = {"connection": "people", "email": "grace@example.test", "password": "Correct-Horse-7", "verify_email": True}
    created = api.post("users", new)
    assert created.status == 201
    path = f"users/{created.json['user_id'].replace('|', '%7C')}"
    assert api.patch(path, {"given_name": "Grace"}).status == 200
    assert api.patch(path, {"verify_email": True, "family_name": "Hopper"}).json["family_name"] == "Hopper"
    assert api.patch(path, {"email_verified": True, "verify_email": True}).status == 200
    jobs = Job.objects.of(database_connection.tenant_id).filter(type=Job.Type.VERIFICATION_EMAIL)
    assert len(jobs) == 2
    for job in jobs:
        assert run_job(job.pk)


@pytest.mark.parametrize(("reaches_people", "asked", "sent"), [(True, {}, 1), (False, {}, 0), (True, {"verify_email": False}, 0)])
def test_a_new_user_gets_the_mail_by_default_only_if_mails_reach_users(
    api: Management, database_connection: Connection, settings: Any, reaches_people: bool, asked: dict[str, bool], sent: int
) -> None:
    settings.MAIL_REACHES_PEOPLE = reaches_people
    new = {"connection": "people", "email": "grace@example.test", "password": "Correct-Horse-7", **asked}
    assert api.post("users", new).status == 201
    assert Job.objects.of(database_connection.tenant_id).count() == sent


def test_no_job_is_queued_for_a_refused_user(api: Management, ada: User) -> None:
    new = {"connection": "people", "email": ada.email, "password": "Correct-Horse-7", "verify_email": True}
    assert api.post("users", new).status == 409
    assert not Job.objects.of(ada.tenant_id).exists()
