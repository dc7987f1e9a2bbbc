"""Tickets for links that are sent to one user.

Each link works once, and only before its ticket expires. Rows store only the digests of the secrets.
"""

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
    """The link is unknown. Its ticket never existed, or expired long ago."""


class TicketOver(ServiceError):
    """The link no longer works; `ticket` is its ticket."""

    def __init__(self, ticket: AccountTicket) -> None:
        super().__init__()
        self.ticket = ticket


class TicketUsed(TicketOver):
    """This link, or a later link for the same purpose, was already used."""


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
    """Return a new ticket and the secret for its link. The link works only while `email` is the user's address.

    The ticket expires after `life`, or after the usual time for its purpose. `language` is the language of the mail and of the page that
    the link opens. That page reads `parameters`, which are stored as JSON.
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
    """Return the ticket of a link that still works. Raises `TicketUnknown`, `TicketUsed` or `TicketExpired`."""
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
    """Return how many working links of this purpose the user has."""
    working = _open(user).filter(purpose=purpose, expires_at__gt=timezone.now(), parameters__email=(user.email or "").lower())
    return working.count()


def use_up(user: User, purpose: AccountTicket.Purpose) -> int:
    """Mark all unused links of this purpose as used; return how many. The caller holds the lock of the user's row."""
    return _open(user).filter(purpose=purpose).update(used_at=timezone.now())


def void(user: User, purpose: AccountTicket.Purpose) -> int:
    """Let every unused link of this purpose expire now, because the password or the factors of the user have changed.

    Call it with the user's row locked.
    """
    now = timezone.now()
    return _open(user).filter(purpose=purpose, expires_at__gt=now).update(expires_at=now)


def _open(user: User) -> models.QuerySet[AccountTicket]:
    return AccountTicket.objects.of(user.tenant_id).filter(user=user, used_at__isnull=True)
