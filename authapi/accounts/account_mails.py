"""Mails with a link that sets a new password or lifts a block.

A job stores the typed identifier; a worker finds the user and sends the mail. The response therefore takes the same time whether the user
exists or not, and an unavailable mail server delays no request.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.conf import settings

from authapi.accounts.user_lookup import named_user
from authapi.models import AccountTicket, Client
from authapi.services.account_tickets import issue, usable_count
from foundation.database.transactions import unit_of_work
from identity.hosts import default_address
from identity.languages import asked_language, language_for
from identity.mail.sending import MailServerAway, send_mail
from identity.messages.catalogue import KINDS
from identity.messages.facts import user_facts
from identity.messages.links import link_lifetime
from identity.messages.once import send_once
from identity.messages.switches import is_switched_on
from identity.models import Connection, Job, User
from identity.services.failures import NotFound
from identity.services.jobs import Pause, effect_of, send_after_commit, step_of
from identity.services.saving import validated_save

RESET_PATH = "/u/reset-password"
RESET_REQUEST_PATH = "/u/reset-password/request"
UNBLOCK_PATH = "/u/unblock"

_PURPOSES: dict[str, AccountTicket.Purpose] = {
    Job.Type.PASSWORD_RESET_EMAIL: AccountTicket.Purpose.PASSWORD_RESET,
    Job.Type.UNBLOCK_EMAIL: AccountTicket.Purpose.UNBLOCK,
}
# Maximum number of usable links per user and purpose. A user with this number of usable links gets no further mail.
MOST_LINKS = 10


@unit_of_work
def start_reset_mail(*, connection: Connection, identifier: str, client: Client | None, ip: str, address: str = "") -> Job:
    """Queue a mail with a reset link to the user with this identifier. The call takes the same time whether or not the user exists."""
    return _start(Job.Type.PASSWORD_RESET_EMAIL, connection, identifier, client, ip, address)


@unit_of_work
def start_unblock_mail(*, connection: Connection, identifier: str, client: Client | None, ip: str, address: str = "") -> Job:
    """Queue a mail to the user with this identifier, if the user exists.

    The mail says that logins are blocked; its link lifts the block.
    """
    return _start(Job.Type.UNBLOCK_EMAIL, connection, identifier, client, ip, address)


def _start(job_type: Job.Type, connection: Connection, identifier: str, client: Client | None, ip: str, address: str) -> Job:
    asked: dict[str, Any] = {
        "identifier": identifier,
        "client_id": client.client_id if client else "",
        "ip": ip,
        "address": address,
        "language": asked_language(),
    }
    parameters = {name: value for name, value in asked.items() if value}
    job = Job(tenant_id=connection.tenant_id, type=job_type, connection=connection, parameters=parameters)
    validated_save(job)
    send_after_commit(job)
    return job


@step_of(Job.Type.PASSWORD_RESET_EMAIL)
@step_of(Job.Type.UNBLOCK_EMAIL)
def find_recipient(job: Job) -> bool:
    """Mark the mail as due if the identifier belongs to a user. Return False if no work remains.

    No work remains if the mail is already marked as due, if no user with an email address has the identifier, or if the user has
    `MOST_LINKS` usable links. The limit applies per user, so requests with many identifiers or from many IP addresses cannot flood one
    mailbox.
    """
    user = None if "recipient" in job.summary else _recipient(job)
    if user is None or usable_count(user, _PURPOSES[job.type]) >= MOST_LINKS:
        return False
    job.summary["recipient"] = "found"
    job.has_effect_due = True
    return True


@effect_of(Job.Type.PASSWORD_RESET_EMAIL)
def mail_reset(job: Job) -> Pause | None:
    """Send the link that sets a new password."""
    return _mail(job, "reset_email", AccountTicket.Purpose.PASSWORD_RESET, RESET_PATH)


@effect_of(Job.Type.UNBLOCK_EMAIL)
def mail_unblock(job: Job) -> Pause | None:
    """Send the link that lifts the block."""
    return _mail(job, "blocked_account", AccountTicket.Purpose.UNBLOCK, UNBLOCK_PATH)


def _mail(job: Job, name: str, purpose: AccountTicket.Purpose, path: str) -> Pause | None:
    """Mail a link, at most once. Send nothing if the tenant has disabled this mail."""
    user = _recipient(job)
    if user is None or not is_switched_on(job.tenant_id, KINDS[name]):
        return None
    base = (settings.INSECURE_HTTP and job.parameters.get("address")) or default_address(job.tenant_id)
    if not base:
        raise NotFound("The tenant has no verified domain for the link.")
    return send_once(job, partial(_send_link, job, user, name, purpose, f"{base}{path}"))


def _send_link(job: Job, user: User, name: str, purpose: AccountTicket.Purpose, page: str) -> None:
    """Issue a ticket and mail its link. Each attempt issues a new ticket, because the secret of an earlier ticket is not stored."""
    client = asking_client(job)
    life = link_lifetime(job.tenant_id, name)
    language = language_for(user, job.tenant_id, asked=job.parameters.get("language", ""))
    ticket, secret = issue(user=user, purpose=purpose, client=client, email=user.email or "", life=life, language=language)
    context = {
        "url": f"{page}?ticket={secret}",
        "until": ticket.expires_at.isoformat(),
        "user": user_facts(user, source_ip=job.parameters.get("ip", "")),
        "connection": {"name": job.connection.name if job.connection else ""},
        "application": {"name": client.name if client else "", "clientID": client.client_id if client else ""},
    }
    try:
        send_mail(name, to=[user.email or ""], context=context, tenant_id=job.tenant_id, language=language)
    except MailServerAway:
        ticket.delete()
        raise


def _recipient(job: Job) -> User | None:
    user = named_user(job.connection, job.parameters.get("identifier", "")) if job.connection else None
    return user if user is not None and user.email else None


def asking_client(job: Job) -> Client | None:
    """Return the client of the login or request that caused a mail. None if the request named no client, or if the client was deleted."""
    return Client.objects.of(job.tenant_id).filter(client_id=job.parameters.get("client_id", "")).first()
