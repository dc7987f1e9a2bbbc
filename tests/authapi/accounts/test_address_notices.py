"""A mail to the former email address of an account says that the address has changed."""

from __future__ import annotations

from django.core import mail
from django.test import override_settings

from identity.messages.queue import _Content
from identity.messages.templates import save_template
from identity.models import Job, Tenant, User
from identity.services.jobs import run_job
from identity.services.users import update_user
from tests.factories.identity import make_connection, make_user
from tests.factories.sign_in import people, person


def changed(user: User, **changes: object) -> None:
    update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes=changes)


def notices(tenant: Tenant) -> list[Job]:
    return list(Job.objects.of(tenant.pk).filter(type=Job.Type.MESSAGE, parameters__kind="address_notice").order_by("created_at", "pk"))


def test_the_former_address_gets_a_mail_that_does_not_name_the_new_address(tenant: Tenant) -> None:
    ada = person(people(tenant), email="Ada@example.test")
    changed(ada, email="eve@example.test")
    (job,) = notices(tenant)
    assert "eve@example.test" not in str(_Content.opened(job).context)
    run_job(job.pk)
    run_job(job.pk)
    (message,) = mail.outbox
    assert message.to == ["Ada@example.test"]
    assert "has another email address now" in str(message.body)
    assert "contact the people who run the application" in str(message.body)
    assert "eve@" not in str(message.body)


def test_a_notice_is_sent_only_if_this_service_replaces_an_existing_address(tenant: Tenant) -> None:
    ada = person(people(tenant), email="ada@example.test")
    changed(ada, email="ADA@example.test", given_name="Ada")
    changed(ada, blocked=True)
    nameless = person(ada.connection, email=None, username="nameless")
    changed(nameless, email="first@example.test")
    elsewhere = make_user(connection=make_connection(tenant_id=tenant.pk, name="corp", strategy="oidc"), email="grace@corp.example")
    changed(elsewhere, email="grace@other.example")
    assert notices(tenant) == []


def test_an_address_can_be_changed_when_no_mail_can_be_sent(tenant: Tenant) -> None:
    ada = person(people(tenant), email="ada@example.test")
    with override_settings(MAIL_IS_CONFIGURED=False):
        changed(ada, email="one@example.test")
    save_template(tenant_id=tenant.pk, name="address_notice", values={"is_enabled": False})
    changed(ada, email="two@example.test")
    ada.refresh_from_db()
    assert (ada.email, notices(tenant)) == ("two@example.test", [])
