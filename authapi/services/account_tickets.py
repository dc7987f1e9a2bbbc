"""Links for one user: each works once and for a while, and only its digest is stored."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import models
from django.utils import timezone

from authapi.models import AccountTicket, Client
from foundation.secrets.random_secrets import digest_of, new_secret
from identity.models import User
from identity.services.failures import ServiceError

LIFE = {
    AccountTicket.Purpose.PASSWORD_RESET: timedelta(hours=1),
    AccountTicket.Purpose.UNBLOCK: timedelta(days=7),
    AccountTicket.Purpose.ENROLLMENT: timedelta(days=5),
}


class TicketUnknown(ServiceError):
    """The link is not one of this service, or its time is long over."""


class TicketOver(ServiceError):
    """The link works no more; `ticket` is what it stands for."""

    def __init__(self, ticket: AccountTicket) -> None:
        super().__init__()
        self.ticket = ticket


class TicketUsed(TicketOver):
    """The link was used already, or a later one was."""


class TicketExpired(TicketOver):
    """The link has expired."""


def issue(
    *,
    user: User,
    purpose: AccountTicket.Purpose,
    client: Client | None,
    email: str,
    life: timedelta | None = None,
    language: str = "",
    **parameters: Any,
) -> tuple[AccountTicket, str]:
    """Return a new ticket and the secret that its link carries. It is meant for `email`: a later address of the user voids it.

    It works for `life`, without one for as long as links of this purpose do. `language` is that of the mail, and of the page that
    the link opens; `parameters` are JSON that this page reads.
    """
    secret = new_secret()
    ticket = AccountTicket(
        tenant_id=user.tenant_id,
        purpose=purpose,
        user=user,
        client=client,
        digest=digest_of(secret),
        parameters={**parameters, "email": email.lower()},
        language=language,
        expires_at=timezone.now() + (life or LIFE[purpose]),
    )
    ticket.save(force_insert=True)
    return ticket, secret


def usable(*, tenant_id: str, purpose: AccountTicket.Purpose, secret: str) -> AccountTicket:
    """Return the ticket of a link that can still be used; raise `TicketUnknown`, `TicketUsed` or `TicketExpired`."""
    found = AccountTicket.objects.of(tenant_id).select_related("user__connection", "client")
    ticket = found.filter(digest=digest_of(secret), purpose=purpose).first()
    if ticket is None:
        raise TicketUnknown
    if ticket.used_at is not None:
        raise TicketUsed(ticket)
    if ticket.expires_at <= timezone.now() or (ticket.user.email or "").lower() != ticket.parameters.get("email"):
        raise TicketExpired(ticket)
    return ticket


def usable_count(user: User, purpose: AccountTicket.Purpose) -> int:
    """Return how many links of this purpose the user has that still work."""
    working = _open(user).filter(purpose=purpose, expires_at__gt=timezone.now(), parameters__email=(user.email or "").lower())
    return working.count()


def use_up(user: User, purpose: AccountTicket.Purpose) -> int:
    """Let no open link of this purpose work any more; call it with the user's row locked."""
    return _open(user).filter(purpose=purpose).update(used_at=timezone.now())


def void(user: User, purpose: AccountTicket.Purpose) -> int:
    """Let every open link of this purpose expire now: what it was made for has changed. Call it with the user's row locked."""
    now = timezone.now()
    return _open(user).filter(purpose=purpose, expires_at__gt=now).update(expires_at=now)


def _open(user: User) -> models.QuerySet[AccountTicket]:
    return AccountTicket.objects.of(user.tenant_id).filter(user=user, used_at__isnull=True)
