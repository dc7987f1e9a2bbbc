"""The welcome mail for users who sign up, if the tenant has enabled the mail."""

from __future__ import annotations

from django.core import mail

from authapi.accounts.sign_up import SignUp, sign_up
from identity.messages.templates import save_template
from identity.models import Connection, Job, Tenant
from identity.services.jobs import run_job


def greeted(connection: Connection) -> list[str]:
    sign_up(SignUp(connection=connection, password="Correct-Horse-7-Battery", profile={"email": "new@example.test"}))
    for job in Job.objects.of(connection.tenant_id).filter(type=Job.Type.MESSAGE):
        assert run_job(job.pk)
    return [str(message.subject) for message in mail.outbox]


def test_a_new_user_gets_one_welcome_mail_if_the_tenant_has_enabled_the_mail(tenant: Tenant, database_connection: Connection) -> None:
    save_template(tenant_id=tenant.pk, name="welcome_email", values={"is_enabled": True})
    assert greeted(database_connection) == [f"Welcome to {tenant.name}"]


def test_no_welcome_mail_is_sent_by_default(database_connection: Connection) -> None:
    assert greeted(database_connection) == []
