"""Mails that ask a user to verify an email address, and the verification.

A mail has a signed link to a page. A button on this page verifies the address; a link works once.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.core import signing
from django.utils import timezone

from foundation.database.transactions import unit_of_work
from identity.hosts import default_address
from identity.languages import DEFAULT, asked_language, language_for
from identity.mail.sending import send_mail
from identity.messages.catalogue import KINDS
from identity.messages.facts import user_facts
from identity.messages.links import link_lifetime
from identity.messages.mailing import mail_provider
from identity.messages.once import send_once
from identity.messages.outcomes import MessageRefused
from identity.messages.switches import is_switched_on
from identity.models import EmailTicket, Job, LinkedIdentity, User
from identity.services.failures import AlreadyExists, Invalid, NotFound, ServiceError
from identity.services.jobs import Pause, effect_of, send_after_commit, step_of
from identity.services.saving import validated_save
from identity.services.users import create_user, locked_user, touch, update_user

PATH = "/u/email-verification"
MAIL = "verify_email"
_SALT = "identity.email-ticket"


class TicketUnknown(ServiceError):
    """The link is not a link of this service."""


class TicketOver(ServiceError):
    """The link no longer works. `ticket` is the ticket of the link, or None if the ticket was deleted."""

    def __init__(self, ticket: EmailTicket | None = None) -> None:
        super().__init__()
        self.ticket = ticket


class TicketUsed(TicketOver):
    """The link was used already."""


class TicketExpired(TicketOver):
    """The link has expired, or the address has changed since."""


@unit_of_work
def start_verification(
    *,
    tenant_id: str,
    user_id: str,
    client_id: str = "",
    organization_id: str = "",
    identity: tuple[str, str] | None = None,
    address: str = "",
) -> Job:
    """Return a pending job that mails a link to the address of a user, or to the address of a linked `identity` (provider, id).

    Links use the default domain of the tenant, or the base URL `address` if the service uses plain http (`INSECURE_HTTP`). Raises
    `NotFound`, or `Invalid` for a user or identity without an email address.
    """
    user = User.objects.of(tenant_id).filter(user_id=user_id).first()
    if user is None:
        raise NotFound("The user does not exist.")
    linked = _linked(user, identity)
    if not (linked.profile_data.get("email") if linked else user.email):
        raise Invalid({"user_id": ["The user has no e-mail address"]})
    parameters = {
        "user_id": user_id,
        "client_id": client_id,
        "organization_id": organization_id,
        "identity": [linked.provider, linked.identifier] if linked else None,
        "address": address,
        "language": asked_language(),
    }
    job = Job(
        tenant_id=tenant_id,
        type=Job.Type.VERIFICATION_EMAIL,
        connection=linked.connection if linked else user.connection,
        parameters={name: value for name, value in parameters.items() if value},
    )
    validated_save(job)
    send_after_commit(job)
    return job


def wants_mail(user: User, *, asked: bool | None) -> bool:
    """Tell whether to mail a link to a user that was created or changed. `asked` is the caller's choice, or None for the default.

    Decision: docs/adr/0051. By default, the service mails a link to an unverified address of a database user. It does so only if mails
    reach real recipients and the tenant has not switched this mail off.
    """
    if not user.email or user.email_verified:
        return False
    if asked is not None:
        return asked
    reaches_people = settings.MAIL_REACHES_PEOPLE or mail_provider(user.tenant_id) is not None
    return bool(reaches_people and user.connection.is_database and is_switched_on(user.tenant_id, KINDS[MAIL]))


@unit_of_work
def create_user_with_mail(*, asked: bool | None, address: str, tenant_id: str, **created: Any) -> User:
    """Create a user like `create_user`, together with the job of the mail if `wants_mail`."""
    user = create_user(tenant_id=tenant_id, **created)
    if wants_mail(user, asked=asked):
        start_verification(tenant_id=tenant_id, user_id=user.user_id, address=address)
    return user


@unit_of_work
def update_user_with_mail(*, address: str, tenant_id: str, user_id: str, changes: dict[str, Any], client_id: str = "") -> User:
    """Change a user like `update_user`, together with the job of the mail if `wants_mail`."""
    user = update_user(tenant_id=tenant_id, user_id=user_id, changes=changes)
    if wants_mail(user, asked=True):
        start_verification(tenant_id=tenant_id, user_id=user_id, client_id=client_id, address=address)
    return user


@step_of(Job.Type.VERIFICATION_EMAIL)
def issue_ticket(job: Job) -> bool:
    """Issue the ticket of a job and request its mail. Returns False if the job already has a ticket."""
    if EmailTicket.objects.of(job.tenant_id).filter(job=job).exists():
        return False
    user = User.objects.of(job.tenant_id).select_related("connection").filter(user_id=job.parameters["user_id"]).first()
    if user is None:
        raise NotFound("The user does not exist.")
    named = job.parameters.get("identity")
    linked = _linked(user, (named[0], named[1]) if named else None)
    life = link_lifetime(job.tenant_id, MAIL) or timedelta(days=settings.EMAIL_TICKET_DAYS)
    language = language_for(user, job.tenant_id, asked=job.parameters.get("language", ""))
    validated_save(_new_ticket(user, linked, life=life, job=job, language=language))
    job.has_effect_due = True
    return True


@effect_of(Job.Type.VERIFICATION_EMAIL)
def mail_ticket(job: Job) -> Pause | None:
    """Send the mail of the job's ticket, once. Raises `MessageRefused` if the tenant has switched the mail off."""
    if not is_switched_on(job.tenant_id, KINDS[MAIL]):
        raise MessageRefused("The tenant has switched this mail off.")
    ticket = EmailTicket.objects.of(job.tenant_id).select_related("user").get(job=job)
    asked_at = job.parameters.get("address", "")
    if ticket.used_at is not None:
        # Another link or a new password has voided this ticket meanwhile.
        return None
    # With plain http on loopback, the link needs the port, which registered domains do not have.
    base = (settings.INSECURE_HTTP and asked_at) or default_address(job.tenant_id)
    if not base:
        raise NotFound("The tenant has no verified domain to which a link could point.")
    # Tickets that an earlier version of the service issued have no language.
    language = ticket.language or DEFAULT
    context = {
        "url": link_of(ticket, base),
        "until": ticket.expires_at.isoformat(),
        "user": {**user_facts(ticket.user), "email": ticket.email},
        "connection": {"name": job.connection.name if job.connection else ""},
    }
    send = partial(send_mail, MAIL, to=[ticket.email], context=context, tenant_id=job.tenant_id, language=language)
    return send_once(job, send, lasts_until=ticket.expires_at)


@unit_of_work
def hand_out_ticket(*, user: User, identity: tuple[str, str] | None, life: timedelta, parameters: dict[str, Any]) -> EmailTicket:
    """Return a ticket whose link the caller delivers. `parameters` say where the link leads after its use.

    Raises `NotFound` for an identity that is not linked to the user, and `Invalid` without an address.
    """
    linked = _linked(user, identity)
    ticket = _new_ticket(user, linked, life=life, parameters=parameters)
    if not ticket.email:
        raise Invalid({"user_id": ["The user has no e-mail address"]})
    validated_save(ticket)
    return ticket


def link_of(ticket: EmailTicket, base: str) -> str:
    """Return the link of a ticket. `base` is a base URL of its tenant."""
    return f"{base}{PATH}?ticket={token_of(ticket)}"


def token_of(ticket: EmailTicket) -> str:
    """Return the parameter of the link: the id of the ticket, signed for its tenant."""
    return signing.Signer(salt=f"{_SALT}:{ticket.tenant_id}").sign(ticket.pk)


def signed_ticket(*, tenant_id: str, token: str) -> EmailTicket | None:
    """Return the ticket of a link, even if the link no longer works; None if the ticket was deleted. Raises `TicketUnknown`."""
    try:
        key = signing.Signer(salt=f"{_SALT}:{tenant_id}").unsign(token)
    except signing.BadSignature as error:
        raise TicketUnknown from error
    return EmailTicket.objects.of(tenant_id).select_related("user", "tenant", "job").filter(pk=key).first()


def usable_ticket(*, tenant_id: str, token: str) -> EmailTicket:
    """Return the ticket of a link that can be confirmed. Raises `TicketUnknown`, `TicketUsed` or `TicketExpired`."""
    ticket = signed_ticket(tenant_id=tenant_id, token=token)
    if ticket is None:
        # The link has a valid signature, so the ticket existed. It was pruned because of its age, or its user was deleted.
        raise TicketExpired
    if ticket.used_at is not None:
        raise TicketUsed(ticket)
    if ticket.expires_at <= timezone.now() or not _is_still_meant(ticket):
        raise TicketExpired(ticket)
    return ticket


@unit_of_work
def confirm_ticket(*, tenant_id: str, token: str) -> EmailTicket:
    """Mark the address of a link as verified, once, with the event of that change. Raises the errors of `usable_ticket`.

    A link of an address change also sets the address. If another user has the address by now, the link counts as expired.
    """
    ticket = usable_ticket(tenant_id=tenant_id, token=token)
    # The lock of the user's row orders concurrent calls: the second call finds the ticket used.
    user = locked_user(tenant_id=tenant_id, user_id=ticket.user.user_id)
    ticket = usable_ticket(tenant_id=tenant_id, token=token)
    if ticket.former_email is not None:
        _take_the_place_of_the_former(user, ticket)
        return ticket
    linked = _linked(user, (ticket.provider, ticket.identifier) if ticket.provider else None)
    if linked is not None:
        linked.profile_data = {**linked.profile_data, "email_verified": True}
        touch(user)
        linked.save(update_fields=["profile_data"])
    elif not user.email_verified:
        update_user(tenant_id=tenant_id, user_id=user.user_id, changes={"email_verified": True})
    ticket.used_at = timezone.now()
    ticket.save(update_fields=["used_at"])
    return ticket


def _take_the_place_of_the_former(user: User, ticket: EmailTicket) -> None:
    ticket.used_at = timezone.now()
    ticket.save(update_fields=["used_at"])
    try:
        update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes={"email": ticket.email, "email_verified": True})
    except AlreadyExists as error:
        raise TicketExpired(ticket) from error


def _new_ticket(user: User, linked: LinkedIdentity | None, *, life: timedelta, **columns: Any) -> EmailTicket:
    return EmailTicket(
        tenant_id=user.tenant_id,
        user=user,
        email=(linked.profile_data.get("email") if linked else user.email) or "",
        provider=linked.provider if linked else "",
        identifier=linked.identifier if linked else "",
        expires_at=timezone.now() + life,
        **columns,
    )


def _is_still_meant(ticket: EmailTicket) -> bool:
    if ticket.former_email is not None:
        # A change of the address after the ticket was issued voids the link.
        return (ticket.user.email or "").lower() == ticket.former_email.lower()
    try:
        linked = _linked(ticket.user, (ticket.provider, ticket.identifier) if ticket.provider else None)
    except NotFound:
        return False
    present = linked.profile_data.get("email") if linked else ticket.user.email
    return bool(present) and str(present).lower() == ticket.email.lower()


def _linked(user: User, identity: tuple[str, str] | None) -> LinkedIdentity | None:
    """Return the linked identity with this provider and id, or None for the primary identity. Raises `NotFound`."""
    if identity is None:
        return None
    provider, identifier = identity[0], identity[1].removeprefix(f"{identity[0]}|")
    if user.user_id == f"{provider}|{identifier}":
        return None
    found = LinkedIdentity.objects.of(user.tenant_id).select_related("connection")
    linked = found.filter(user=user, provider=provider, identifier=identifier).first()
    if linked is None:
        raise NotFound("The identity is not linked to this user.")
    return linked
