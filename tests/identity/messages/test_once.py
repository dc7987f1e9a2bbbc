"""A message is sent at most once, and its content is deleted as soon as it has been sent or given up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core import mail
from django.db import transaction
from django.utils import timezone

from identity.messages import once
from identity.messages.queue import queue_message
from identity.models import AuditEntry, Job, Tenant, User
from identity.services.failures import Invalid
from identity.services.jobs import cancel_job, run_job
from tests.factories.models.identity import MessageTemplateFactory
from tests.identity.sweeps import take_all_unattended_jobs

CODE = "493817"


def queued(tenant: Tenant, **changed: Any) -> Job:
    asked: dict[str, Any] = {
        "kind": "passwordless_email",
        "channel": "email",
        "recipient": "ada@example.test",
        "context": {"code": CODE, "send": "code"},
    }
    return queue_message(tenant_id=tenant.pk, **{**asked, **changed})


def stored(job: Job) -> Job:
    return Job.objects.of(job.tenant_id).get(pk=job.pk)


def test_a_message_is_sent_once_and_its_content_is_deleted(tenant: Tenant) -> None:
    job = queued(tenant)
    before = Job.objects.of(tenant.pk).values().get(pk=job.pk)
    assert CODE not in str(before)
    assert "ada@example.test" not in str(before)
    for _ in range(3):
        assert run_job(job.pk)
    assert [message.to for message in mail.outbox] == [["ada@example.test"]]
    assert CODE in mail.outbox[0].body
    assert (stored(job).status, stored(job).parameters.get("sealed")) == ("completed", None)


def test_a_sent_message_is_not_sent_again_by_a_second_worker(tenant: Tenant) -> None:
    job = queued(tenant)
    sent: list[int] = []
    for number in range(2):
        # Both workers have read the job before one of them sends the message, so the second worker sees the old state.
        stale = Job(pk=job.pk, tenant_id=tenant.pk, created_at=job.created_at)
        assert once.send_once(stale, lambda number=number: sent.append(number)) is None  # type: ignore[misc]
    assert (sent, stored(job).summary["delivery"]) == ([0], "sent")


def test_no_message_is_queued_if_the_transaction_is_rolled_back(tenant: Tenant) -> None:
    with transaction.atomic():
        queued(tenant)
        transaction.set_rollback(True)
    assert not Job.objects.of(tenant.pk).exists()


def test_a_message_is_not_sent_again_after_a_worker_was_killed_while_sending_it(tenant: Tenant) -> None:
    job = queued(tenant)
    # The state after a worker was killed between the transaction that claims the message and the transaction that records the result.
    assert once._claimed(job, None) is None
    assert run_job(job.pk)
    assert (mail.outbox, stored(job).summary["delivery"]) == ([], "sending")
    Job.objects.of(tenant.pk).filter(pk=job.pk).update(lease_until=None)
    assert job.pk in take_all_unattended_jobs()
    with time_machine.travel(timezone.now() + timedelta(seconds=61)):
        assert run_job(job.pk)
    assert (mail.outbox, stored(job).summary["delivery"]) == ([], "in_doubt")
    assert "not sent again" in stored(job).status_details
    assert "sealed" not in stored(job).parameters


def test_an_expired_code_is_not_sent(tenant: Tenant) -> None:
    job = queued(tenant, expires_at=timezone.now() + timedelta(minutes=5))
    with time_machine.travel(timezone.now() + timedelta(minutes=6)):
        assert run_job(job.pk)
    assert (mail.outbox, stored(job).summary["delivery"], "sealed" in stored(job).parameters) == ([], "dropped", False)


def test_a_message_with_a_code_is_retried_only_before_the_code_expires(tenant: Tenant, settings: Any) -> None:
    job = queued(tenant, expires_at=timezone.now() + timedelta(seconds=10))
    settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = "django.core.mail.backends.smtp.EmailBackend", "127.0.0.1", 9
    assert run_job(job.pk)
    lease = stored(job).lease_until
    assert lease is not None
    assert lease <= timezone.now() + timedelta(seconds=10)


def test_a_failed_job_deletes_the_content_of_its_message(tenant: Tenant, settings: Any) -> None:
    job = queued(tenant)
    settings.MAIL_IS_CONFIGURED = False
    assert run_job(job.pk)
    assert (stored(job).status, "sealed" in stored(job).parameters) == ("failed", False)


def test_a_job_cannot_open_the_sealed_message_of_another_job(tenant: Tenant) -> None:
    one, other = queued(tenant), queued(tenant)
    Job.objects.of(tenant.pk).filter(pk=one.pk).update(parameters=stored(other).parameters)
    assert run_job(one.pk)
    assert (mail.outbox, stored(one).status) == ([], "failed")


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "change_password"},
        {"kind": "nothing"},
        {"kind": "passwordless_sms"},
        {"recipient": "no address"},
        {"recipient": "ada@example.test\r\nBcc: all@example.test"},
        {"recipient": "ada@example.test, eve@example.test"},
        {"context": {"code": "x" * 70_000}},
    ],
    ids=range(7),
)
def test_an_invalid_message_is_refused(tenant: Tenant, changed: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        queued(tenant, **changed)


def test_the_context_of_a_message_may_contain_only_plain_values(tenant: Tenant, ada: User) -> None:
    with pytest.raises(TypeError):
        queued(tenant, context={"user": ada})


def test_the_built_in_text_is_sent_if_a_template_fails_during_sending(tenant: Tenant) -> None:
    MessageTemplateFactory.create(
        tenant_id=tenant.pk, name="passwordless_email", subject="Own", body="{% if code == '493817' %}{{ 1 | divided_by: 0 }}{% endif %}"
    )
    assert run_job(queued(tenant).pk)
    (sent,) = mail.outbox
    assert (CODE in sent.body, sent.subject.startswith("Your code for")) == (True, True)
    entry = AuditEntry.objects.filter(tenant_id=tenant.pk, act__startswith="Sent the built-in text").get()
    assert CODE not in str(entry.facts)


def test_the_job_of_a_message_cannot_be_canceled(tenant: Tenant) -> None:
    job = queued(tenant)
    with pytest.raises(Exception, match="cannot be canceled"):
        cancel_job(tenant_id=tenant.pk, job_id=job.pk, actor="x")
