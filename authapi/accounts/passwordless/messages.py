"""Handing a code or a link over to the person: by a worker, which alone looks whether there is an account. The one place that sends.

Code and link stand in the job sealed, and are gone once it is done.
"""

from __future__ import annotations

from typing import Any

import orjson
from django.conf import settings
from django.utils import timezone

from authapi.accounts.passwordless.addresses import Address, Channel, channel_of
from authapi.accounts.passwordless.codes import Contents
from authapi.accounts.passwordless.options import read_options
from authapi.accounts.passwordless.people import user_at
from authapi.models import PasswordlessCode
from authapi.tenant_settings import sign_in_settings
from foundation.secrets import vault
from identity.mail.retries import pause_of
from identity.mail.sending import MailServerAway, send_mail
from identity.models import Connection, Job
from identity.services.jobs import Pause, effect_of, send_after_commit, step_of
from identity.services.saving import validated_save

_SEALED = "sealed_contents"


class CannotSend(Exception):
    """No sender is configured for this kind of message."""


def require_sender(connection: Connection, address: Address) -> None:
    """Raise `CannotSend` where messages to such addresses cannot be sent at all."""
    is_ready = settings.MAIL_IS_CONFIGURED if address.channel is Channel.EMAIL else bool(getattr(settings, "SMS_URL", ""))
    if not is_ready:
        raise CannotSend


def send_later(row: PasswordlessCode, contents: Contents, *, language: str) -> Job:
    """Have a worker send the contents of a row; call it in the transaction that makes the row."""
    job = Job(tenant_id=row.tenant_id, type=Job.Type.PASSWORDLESS_CODE, connection=row.connection)
    sealed = orjson.dumps({"code": contents.code, "link": contents.link}).decode()
    job.parameters = {"row": row.pk, "language": language[:35], _SEALED: vault.seal(sealed, place=_place(job))}
    validated_save(job)
    send_after_commit(job)
    return job


@step_of(Job.Type.PASSWORDLESS_CODE)
def hand_over(job: Job) -> bool:
    """Ask for the message where there is an account or the login may make one, and the code still counts."""
    row = _row(job)
    is_wanted = "recipient" not in job.summary and row is not None and row.used_at is None and row.expires_at > timezone.now()
    if not is_wanted or row is None or not _has_account(row):
        job.parameters.pop(_SEALED, None)
        return False
    job.summary["recipient"] = "found"
    job.has_effect_due = True
    return True


@effect_of(Job.Type.PASSWORDLESS_CODE)
def send(job: Job) -> Pause | None:
    """Send the message of the job."""
    row = _row(job)
    if row is None or row.expires_at <= timezone.now():
        return None
    contents = contents_of(job)
    context: dict[str, Any] = {
        "tenant": sign_in_settings(job.tenant_id).friendly_name,
        "application": row.client.name,
        "code": contents.code,
        "link": contents.link,
        "until": row.expires_at,
    }
    try:
        send_mail("passwordless", to=[row.address], context=context)
    except MailServerAway:
        return pause_of(job)
    return None


def contents_of(job: Job) -> Contents:
    """Return what a job is about to send, in clear."""
    opened = orjson.loads(vault.unseal(job.parameters[_SEALED], place=_place(job)))
    return Contents(opened["code"], opened["link"])


def _has_account(row: PasswordlessCode) -> bool:
    channel = channel_of(row.connection)
    if channel is None:
        return False
    takes_sign_up = row.takes_sign_up and read_options(row.connection.options).takes_sign_ups
    return takes_sign_up or user_at(row.connection, Address(channel, row.address)) is not None


def _row(job: Job) -> PasswordlessCode | None:
    rows = PasswordlessCode.objects.of(job.tenant_id).select_related("client", "connection")
    return rows.filter(pk=job.parameters.get("row")).first()


def _place(job: Job) -> str:
    return f"{job.tenant_id}:job:{job.pk}:contents"
