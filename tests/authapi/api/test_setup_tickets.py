"""`POST /guardian/enrollments/ticket`: which users get a link that sets up a second factor, and to which email address the service mails
it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import override_settings
from django.utils import timezone

from authapi.factors.settings import remembered_factors
from authapi.models import AccountTicket, AdministrativeLine
from authapi.services.tenant_settings import update_tenant_settings
from identity.messages.queue import send_message
from identity.models import AuditEntry, Job, Tenant, User
from identity.services.users import update_user
from tests.authapi.browser import Browser
from tests.authapi.factors.walks import give_app, set_factors
from tests.config.two_tenants import make_other_tenant
from tests.factories.identity import make_user
from tests.factories.models.identity import UserFactory
from tests.factories.sign_in import people, person
from tests.management import Answer, Management

PATH = "guardian/enrollments/ticket"


@pytest.fixture
def grace(tenant: Tenant) -> Iterator[User]:
    set_factors(tenant, "otp", "email")
    yield person(people(tenant), email="grace@example.test")
    remembered_factors.clear()


def asked(api: Management, user: User, **body: Any) -> Answer:
    return api.post(PATH, {"user_id": user.user_id, **body})


def refusal(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json["message"]


def mails_of(tenant: Tenant) -> list[Job]:
    return list(Job.objects.of(tenant.pk).filter(type=Job.Type.MESSAGE, parameters__kind="enrollment_email"))


def test_the_link_opens_the_setup_page_but_the_id_of_the_ticket_does_not(api: Management, tenant: Tenant, grace: User) -> None:
    made = asked(api, grace)
    assert (made.status, list(made.json)) == (200, ["ticket_id", "ticket_url"])
    base, _, secret = made.json["ticket_url"].partition("/u/factor-setup?ticket=")
    assert base.partition("://")[2] == f"{tenant.pk}.example.test"
    assert "Protect your account" in Browser(tenant).get("/u/factor-setup", {"ticket": secret}).text
    assert Browser(tenant).get("/u/factor-setup", {"ticket": made.json["ticket_id"]}).status == 410
    ticket = AccountTicket.objects.of(tenant.pk).get(pk=made.json["ticket_id"])
    assert secret not in str(vars(ticket))
    assert timedelta(days=4, hours=23) < ticket.expires_at - timezone.now() <= timedelta(days=5)
    assert mails_of(tenant) == []
    entry = AuditEntry.objects.get(tenant_id=tenant.pk, act="Created a link that sets up a second factor")
    assert (entry.actor_kind, secret in str(vars(entry))) == ("client", False)
    lines = AdministrativeLine.objects.of(tenant.pk)
    assert all(secret not in str(vars(line)) for line in lines)


def test_a_link_is_refused_if_the_user_can_set_up_no_factor(api: Management, tenant: Tenant, grace: User) -> None:
    assert refusal(asked(api, grace, factor="phone")) == (
        409,
        "The user cannot set up this factor: it is off, its codes have no sender, or the user has it already.",
    )
    assert asked(api, grace, factor="otp").status == 200
    assert refusal(asked(api, grace, factor="push-notification")) == (400, "Not supported: this service has no factor push-notification.")
    assert asked(api, grace, factor="duo").status == 400
    give_app(grace)
    assert refusal(asked(api, grace))[0] == 409
    assert refusal(asked(api, grace, allow_multiple_enrollments=False))[0] == 409
    assert asked(api, grace, allow_multiple_enrollments=True).status == 200
    update_user(tenant_id=tenant.pk, user_id=grace.user_id, changes={"blocked": True})
    assert refusal(asked(api, grace, allow_multiple_enrollments=True)) == (409, "The user is blocked: unblock the user first.")
    set_factors(tenant)
    other = make_user(connection=grace.connection, email="other@example.test")
    assert refusal(asked(api, other)) == (409, "No second factor can be set up: turn one on first, and configure the sender of its codes.")


def test_unknown_users_and_invalid_bodies_are_refused(api: Management, tenant: Tenant, grace: User) -> None:
    foreign = UserFactory.create(tenant_id=make_other_tenant().pk)
    for user_id in ("database|0123456789abcdef01234567", foreign.user_id):
        answer = api.post(PATH, {"user_id": user_id})
        assert (answer.status, answer.json["errorCode"]) == (404, "inexistent_user")
    for body in ({}, {"user_id": 1}, {"user_id": grace.user_id, "more": 1}, {"user_id": grace.user_id, "send_mail": "yes"}):
        assert api.post(PATH, body).status == 400
    assert asked(api, grace, email="nowhere").status == 400
    assert not AccountTicket.objects.of(tenant.pk).exists()


def test_creating_a_setup_link_requires_a_scope(tenant: Tenant, grace: User) -> None:
    reader = Management(tenant, scope="read:guardian_enrollments update:users create:user_tickets")
    assert asked(reader, grace).status == 403
    maker = Management(tenant, scope="create:guardian_enrollment_tickets")
    assert asked(maker, grace).status == 200


@pytest.mark.parametrize(("locale", "subject"), [("ja", "認証要素"), ("fr", "facteur"), ("xx", "Set up a second factor for")])
def test_the_mail_is_written_in_the_requested_language_and_its_link_works(
    api: Management, tenant: Tenant, grace: User, locale: str, subject: str
) -> None:
    update_tenant_settings(tenant_id=tenant.pk, changes={"enabled_locales": ["en", "ja", "fr"]})
    made = asked(api, grace, send_mail=True, email_locale=locale)
    assert made.status == 200
    (job,) = mails_of(tenant)
    assert made.json["ticket_url"] not in str(vars(job))
    send_message(job)
    (message,) = mail.outbox
    assert (message.to, subject in message.subject) == (["grace@example.test"], True)
    assert made.json["ticket_url"] in message.body


def test_the_mail_is_sent_to_the_address_that_the_request_names(api: Management, tenant: Tenant, grace: User) -> None:
    assert asked(api, grace, send_mail=True, email="desk@example.test").status == 200
    (job,) = mails_of(tenant)
    send_message(job)
    assert [message.to for message in mail.outbox] == [["desk@example.test"]]
    entry = AuditEntry.objects.get(tenant_id=tenant.pk, act="Created a link that sets up a second factor")
    assert "another address" in str(vars(entry))


def test_a_mail_requires_an_address_and_a_mail_server(api: Management, tenant: Tenant, grace: User) -> None:
    nameless = make_user(connection=grace.connection, email=None, username="nameless")
    assert refusal(asked(api, nameless, send_mail=True)) == (
        400,
        "Payload validation error: 'The user has no email address: set email to an address, or leave out send_mail' on property email",
    )
    assert asked(api, nameless).status == 200
    assert asked(api, nameless, send_mail=True, email="desk@example.test").status == 200
    with override_settings(MAIL_IS_CONFIGURED=False):
        refused = asked(api, grace, send_mail=True)
    assert (refused.status, mails_of(tenant)[1:]) == (400, [])
    assert AccountTicket.objects.of(tenant.pk).filter(user=grace).count() == 0


def test_mails_to_one_address_are_limited(api: Management, tenant: Tenant, grace: User) -> None:
    assert [asked(api, grace, send_mail=True).status for _ in range(11)] == [200] * 10 + [409]
    assert len(mails_of(tenant)) == 10


def test_the_template_decides_the_text_of_the_mail_and_the_lifetime_of_its_link(api: Management, tenant: Tenant, grace: User) -> None:
    template = {"template": "enrollment_email", "from": "", "subject": "Protect {{ friendly_name }}", "body": "<a href='{{ url }}'>go</a>"}
    made = api.post("email-templates", {**template, "syntax": "liquid", "enabled": True, "urlLifetimeInSeconds": 3600})
    assert made.status == 201, made.json
    asked(api, grace, send_mail=True)
    (job,) = mails_of(tenant)
    send_message(job)
    assert mail.outbox[0].subject.startswith("Protect ")
    assert AccountTicket.objects.of(tenant.pk).get().expires_at - timezone.now() <= timedelta(hours=1)
