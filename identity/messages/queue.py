"""Messages as jobs: queued inside a transaction and sent at most once by a worker. A job contains the private content in sealed form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils import timezone

from foundation.database.transactions import unit_of_work
from foundation.secrets import vault
from identity.messages.catalogue import EMAIL, KINDS, SMS, Kind
from identity.messages.composing import Composed, compose
from identity.messages.hooks import HOOK, post_event
from identity.messages.mailing import can_send_mail, mail_server, send_composed
from identity.messages.numbers import masked_address, masked_number, normalized_number
from identity.messages.once import SEALED, SETTLED, send_once, state_of
from identity.messages.outcomes import MailNotConfigured, MessageRefused, TextsNotConfigured
from identity.messages.sandbox import plain
from identity.messages.senders.protocol import TextMessage
from identity.messages.switches import is_switched_on
from identity.messages.text_senders import can_send_texts, countries_for, text_sender
from identity.models import Connection, Job, Staff
from identity.services.failures import Conflict, Invalid
from identity.services.jobs import Pause, effect_of, send_after_commit, step_of
from identity.services.saving import validated_save

_LONGEST_CONTEXT = 60_000
# Limit for the test mails of a staff account within `_TESTS_WITHIN`: enough for an author, too few for spam.
TESTS_AT_ONCE = 5
_TESTS_WITHIN = timedelta(minutes=10)


def can_send(tenant_id: str, channel: str, connection: Connection | None = None) -> bool:
    """Tell whether a provider is configured for this channel."""
    return can_send_mail(tenant_id) if channel == EMAIL else can_send_texts(tenant_id, connection)


@dataclass(frozen=True)
class _Content:
    """The sealed part of a message: its recipient and its context."""

    recipient: str
    context: Mapping[str, Any]

    def sealed(self, job: Job) -> str:
        text = json.dumps({"recipient": self.recipient, "context": self.context})
        if len(text) > _LONGEST_CONTEXT:
            raise Invalid({"context": ["The content of the message is too large."]})
        return vault.seal(text, place=message_place(job))

    @classmethod
    def opened(cls, job: Job) -> _Content:
        try:
            return cls(**json.loads(vault.unseal(job.parameters[SEALED], place=message_place(job))))
        except vault.SecretUnreadable as error:
            raise MessageRefused("The content of the message cannot be decrypted: its key is missing.") from error


@unit_of_work
def queue_message(
    *,
    tenant_id: str,
    kind: str,
    channel: str,
    recipient: str,
    context: Mapping[str, Any],
    language: str | None = "",
    connection: Connection | None = None,
    expires_at: datetime | None = None,
    application: Mapping[str, Any] | None = None,
) -> Job:
    """Return a pending job that sends one message at most once. Nothing is sent before the surrounding transaction commits.

    `context` is plain data. Recipient and context are sealed in the row, and dropped once the message is settled: sent, refused, in doubt,
    or expired at `expires_at`. Raises `NumberRefused` for a number that may not get text messages. Raises `Invalid` for an invalid address
    or context. Raises `MailNotConfigured` or `TextsNotConfigured` if no provider is configured for the channel.
    """
    what = _kind_of(kind, channel)
    if not can_send(tenant_id, channel, connection):
        raise MailNotConfigured if channel == EMAIL else TextsNotConfigured
    data = {**plain(context), **({"application": plain(application)} if application else {})}
    content = _Content(_checked_recipient(recipient, channel, tenant_id, connection), data)
    return _started(what, content, tenant_id=tenant_id, language=language or "", connection=connection, expires_at=expires_at)


@unit_of_work
def queue_event(*, tenant_id: str, name: str, recipient: str, data: Mapping[str, Any], expires_at: datetime) -> Job:
    """Return a pending job that posts one event to the server of the tenant at most once, like `queue_message`.

    `recipient` is a readable name of the target, which jobs show. `data` is sealed in the row. The target is looked up when the event
    is posted (`identity.messages.hooks`).
    """
    job = Job(tenant_id=tenant_id, type=Job.Type.MESSAGE)
    shown = {"kind": name, "channel": HOOK, "to": recipient, "expires_at": expires_at.isoformat()}
    job.parameters = {**shown, SEALED: _Content(recipient, plain(data)).sealed(job)}
    validated_save(job)
    send_after_commit(job)
    return job


@unit_of_work
def queue_test(*, tenant_id: str, kind: str, language: str, staff: Staff) -> Job:
    """Return a job that mails a message with sample data to a staff account's own address.

    Raises `Conflict` after `TESTS_AT_ONCE` tests within ten minutes, and `MailNotConfigured` if no mail server is configured.
    """
    # The lock of the row makes concurrent requests count one after the other.
    Staff.objects.select_for_update(no_key=True).get(pk=staff.pk)
    since = timezone.now() - _TESTS_WITHIN
    recent = Job.objects.of(tenant_id).filter(type=Job.Type.MESSAGE, parameters__asked_by=str(staff.pk), created_at__gt=since)
    if recent.count() >= TESTS_AT_ONCE:
        raise Conflict(f"You have sent {TESTS_AT_ONCE} tests within ten minutes. Wait a little, then try again.")
    if not can_send_mail(tenant_id):
        raise MailNotConfigured
    what = _kind_of(kind, EMAIL)
    content = _Content(staff.email, what.sample())
    return _started(what, content, tenant_id=tenant_id, language=language, asked_by=str(staff.pk))


def _started(
    kind: Kind,
    content: _Content,
    *,
    tenant_id: str,
    language: str,
    connection: Connection | None = None,
    expires_at: datetime | None = None,
    asked_by: str = "",
) -> Job:
    masked = masked_address if kind.channel == EMAIL else masked_number
    parameters = {
        "kind": kind.name,
        "channel": kind.channel,
        "language": language,
        "to": masked(content.recipient),
        "expires_at": expires_at.isoformat() if expires_at else "",
        "asked_by": asked_by,
    }
    job = Job(tenant_id=tenant_id, type=Job.Type.MESSAGE, connection=connection)
    job.parameters = {**{name: value for name, value in parameters.items() if value}, SEALED: content.sealed(job)}
    validated_save(job)
    send_after_commit(job)
    return job


@step_of(Job.Type.MESSAGE)
def ask_for_sending(job: Job) -> bool:
    """Request that a worker sends the message. Returns False once the message is settled."""
    if state_of(job) in SETTLED:
        return False
    job.has_effect_due = True
    return True


@effect_of(Job.Type.MESSAGE)
def send_message(job: Job) -> Pause | None:
    """Compose the message and send it at most once. A message is not sent if it has expired, or if the tenant has switched it off."""
    expires_at = job.parameters.get("expires_at")
    lasts_until = datetime.fromisoformat(expires_at) if expires_at else None
    if state_of(job) in SETTLED or SEALED not in job.parameters:
        return None
    if job.parameters["channel"] == HOOK:
        event = _Content.opened(job).context
        return send_once(job, partial(post_event, job.tenant_id, job.pk, event), lasts_until=lasts_until)
    kind = KINDS[job.parameters["kind"]]
    is_test = bool(job.parameters.get("asked_by"))
    if not is_test and not is_switched_on(job.tenant_id, kind):
        raise MessageRefused("This message is switched off.")
    content = _Content.opened(job)
    composed = compose(
        kind,
        tenant_id=job.tenant_id,
        context=content.context,
        language=job.parameters.get("language", ""),
        connection=job.connection,
    )
    if is_test:
        composed = replace(composed, subject=f"[Test] {composed.subject}")
    return send_once(job, partial(_send, job, kind, composed, content.recipient), lasts_until=lasts_until)


def _send(job: Job, kind: Kind, composed: Composed, recipient: str) -> None:
    if kind.channel == EMAIL:
        send_composed(mail_server(job.tenant_id), composed, to=recipient)
        return
    message = TextMessage(id=job.pk, to=recipient, body=composed.text, sender=composed.from_address)
    text_sender(job.tenant_id, job.connection).send(message)


def _kind_of(name: str, channel: str) -> Kind:
    kind = KINDS.get(name)
    if kind is None or not kind.is_sent or kind.channel != channel:
        raise Invalid({"kind": [f"The service sends no {channel} message {name}."]})
    return kind


def _checked_recipient(recipient: str, channel: str, tenant_id: str, connection: Connection | None) -> str:
    if channel == SMS:
        return normalized_number(recipient, countries=countries_for(tenant_id, connection))
    try:
        validate_email(recipient)
    except ValidationError as error:
        raise Invalid({"recipient": ["Expected an e-mail address"]}) from error
    return recipient


def message_place(job: Job) -> str:
    return f"{job.tenant_id}:message:{job.pk}"
