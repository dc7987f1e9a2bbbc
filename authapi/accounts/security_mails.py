"""Mails that warn a user: the password was found in a breach, or an unknown browser logged in.

Each mail describes the event and contains a link that sets a new password. A worker sends each mail at most once.
`services.security_mail_jobs` queues the jobs.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from django.conf import settings

from authapi.accounts.account_mails import MOST_LINKS, RESET_PATH, asking_client
from authapi.models import AccountTicket, Client
from authapi.services.account_tickets import issue, usable_count
from identity.hosts import default_address
from identity.languages import language_for
from identity.mail.sending import MailServerAway, send_mail
from identity.messages.catalogue import KINDS
from identity.messages.facts import user_facts
from identity.messages.links import link_lifetime
from identity.messages.once import send_once
from identity.messages.switches import is_switched_on
from identity.models import Job, User
from identity.services.jobs import Pause, effect_of, step_of

LEAKED, NEW_DEVICE = "stolen_credentials", "new_device"
# Lifetime of the link. The user does not expect the mail and may read it hours later.
LINK_LIFE = timedelta(hours=24)


@step_of(Job.Type.LEAKED_PASSWORD_EMAIL)
@step_of(Job.Type.NEW_DEVICE_EMAIL)
def ask_for_mail(job: Job) -> bool:
    """Mark the mail as due. Return False if the mail is already due, or if the user has no email address or was deleted."""
    if "recipient" in job.summary or _recipient(job) is None:
        return False
    job.summary["recipient"] = "found"
    job.has_effect_due = True
    return True


@effect_of(Job.Type.LEAKED_PASSWORD_EMAIL)
def mail_leak(job: Job) -> Pause | None:
    """Warn the user that the password was found in a breach."""
    return _mail(job, LEAKED)


@effect_of(Job.Type.NEW_DEVICE_EMAIL)
def mail_new_device(job: Job) -> Pause | None:
    """Warn the user about a login in an unknown browser."""
    return _mail(job, NEW_DEVICE)


def _mail(job: Job, name: str) -> Pause | None:
    user = _recipient(job)
    if user is None or not is_switched_on(job.tenant_id, KINDS[name]):
        return None
    return send_once(job, partial(_send, job, user, name))


def _send(job: Job, user: User, name: str) -> None:
    language = language_for(user, job.tenant_id, asked=job.parameters.get("language", ""))
    client = asking_client(job)
    ticket, url = _link(job, user, name, client, language)
    context = {
        "url": url,
        "until": ticket.expires_at.isoformat() if ticket else "",
        "user": user_facts(user, source_ip=job.parameters.get("ip", "")),
        "connection": {"name": user.connection.name},
        "application": {"name": client.name if client else "", "clientID": client.client_id if client else ""},
        "login": {"time": job.parameters["at"], **_login(job)},
    }
    try:
        send_mail(name, to=[user.email or ""], context=context, tenant_id=job.tenant_id, language=language)
    except MailServerAway:
        if ticket is not None:
            ticket.delete()
        raise


def _link(job: Job, user: User, name: str, client: Client | None, language: str) -> tuple[AccountTicket | None, str]:
    """Return the ticket and the URL of a link that sets a new password. Without a link, return None and an empty text.

    If the user has no password, or already has `MOST_LINKS` usable links, there is no link. The mail is sent in any case: otherwise an
    attacker could suppress the warning by requesting many links.
    """
    base = (settings.INSECURE_HTTP and job.parameters.get("address")) or default_address(job.tenant_id)
    purpose = AccountTicket.Purpose.PASSWORD_RESET
    if not base or not hasattr(user, "password_credential") or usable_count(user, purpose) >= MOST_LINKS:
        return None, ""
    life = link_lifetime(job.tenant_id, name) or LINK_LIFE
    ticket, secret = issue(user=user, purpose=purpose, client=client, email=user.email or "", life=life, language=language)
    return ticket, f"{base}{RESET_PATH}?ticket={secret}"


def _login(job: Job) -> dict[str, str]:
    return {name: job.parameters.get(f"login_{name}", "") for name in ("country", "browser", "system")}


def _recipient(job: Job) -> User | None:
    users = User.objects.of(job.tenant_id).select_related("connection")
    user = users.filter(user_id=job.parameters["user_id"]).first()
    return user if user is not None and user.email else None
