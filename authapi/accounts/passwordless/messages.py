"""Sends a code or a link to the user.

No other module sends codes or links. Only the worker that runs the job looks up the account, and so decides whether a message is sent. The
job stores the code and the link encrypted, and deletes both when the job is done.
"""

from __future__ import annotations

from typing import Any

import orjson
from django.utils import timezone

from authapi.accounts.passwordless.addresses import Address, Channel, channel_of
from authapi.accounts.passwordless.codes import Contents
from authapi.accounts.passwordless.options import read_options
from authapi.accounts.passwordless.people import user_at
from authapi.models import PasswordlessCode
from foundation.secrets import vault
from identity.languages import language_for
from identity.messages.facts import organization_facts, user_facts
from identity.messages.numbers import NumberRefused
from identity.messages.queue import can_send, queue_message
from identity.models import Connection, Job, Organization, User
from identity.services.failures import Invalid
from identity.services.jobs import send_after_commit, step_of
from identity.services.saving import validated_save

# The name of the encrypted contents in the parameters of a job. If a job fails, `identity.services.jobs` deletes the value with this name.
_SEALED = "sealed"
_KINDS = {Channel.EMAIL: "passwordless_email", Channel.SMS: "passwordless_sms"}


class CannotSend(Exception):
    """No sender is configured for this kind of message."""


def require_sender(connection: Connection, address: Address) -> None:
    """Raise `CannotSend` if no sender is configured for messages to this email address or phone number."""
    if not can_send(connection.tenant_id, address.channel.value, connection):
        raise CannotSend


def send_later(row: PasswordlessCode, contents: Contents, *, organization_id: str = "") -> Job:
    """Let a worker send the contents of a row. With `organization_id`, the message has the design of this organization.

    Call it in the transaction that creates the row.
    """
    job = Job(tenant_id=row.tenant_id, type=Job.Type.PASSWORDLESS_CODE, connection=row.connection)
    sealed = orjson.dumps({"code": contents.code, "link": contents.link}).decode()
    job.parameters = {"row": row.pk, "organization_id": organization_id, _SEALED: vault.seal(sealed, place=code_place(job))}
    validated_save(job)
    send_after_commit(job)
    return job


@step_of(Job.Type.PASSWORDLESS_CODE)
def hand_over(job: Job) -> bool:
    """Queue the message if the code is still valid, and if the account exists or may be created.

    Returns False, because the job has no further chunk. Queuing the message and deleting the contents from the job happen in one
    transaction, so the message is queued only once.
    """
    row = _row(job)
    channel = channel_of(row.connection) if row is not None else None
    if row is not None and channel is not None and _SEALED in job.parameters and _counts(row):
        address = Address(channel, row.address)
        user = user_at(row.connection, address)
        if user is not None or (row.takes_sign_up and read_options(row.connection.options).takes_sign_ups):
            _queue(job, row, address, user)
    job.parameters.pop(_SEALED, None)
    return False


def contents_of(job: Job) -> Contents:
    """Return the decrypted contents that a job will send."""
    opened = orjson.loads(vault.unseal(job.parameters[_SEALED], place=code_place(job)))
    return Contents(opened["code"], opened["link"])


def _queue(job: Job, row: PasswordlessCode, address: Address, user: User | None) -> None:
    contents, client = contents_of(job), row.client
    row.language = language_for(user, job.tenant_id, asked=row.language)
    row.save(update_fields=["language"])
    said: dict[str, Any] = {"send": "link", "link": contents.link} if contents.link else {"send": "code", "code": contents.code}
    organization = Organization.objects.of(job.tenant_id).filter(pk=job.parameters.get("organization_id") or None).first()
    said |= {"user": user_facts(user)} if user is not None else {}
    said |= {"organization": organization_facts(organization)} if organization is not None else {}
    try:
        queue_message(
            tenant_id=job.tenant_id,
            kind=_KINDS[address.channel],
            channel=address.channel.value,
            recipient=address.value,
            context=said,
            language=row.language,
            connection=row.connection,
            expires_at=row.expires_at,
            application={"name": client.name, "clientID": client.client_id, "client_metadata": client.metadata},
        )
    except NumberRefused as refused:
        # The allowed countries may have changed since the code was requested.
        raise Invalid({"phone_number": [str(refused)]}) from refused


def _counts(row: PasswordlessCode) -> bool:
    return row.used_at is None and row.expires_at > timezone.now()


def _row(job: Job) -> PasswordlessCode | None:
    rows = PasswordlessCode.objects.of(job.tenant_id).select_related("client", "connection")
    return rows.filter(pk=job.parameters.get("row")).first()


def code_place(job: Job) -> str:
    return f"{job.tenant_id}:job:{job.pk}:contents"
