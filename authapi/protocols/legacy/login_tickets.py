"""Login tickets: a script sends a password or a code and gets a ticket, and the browser then opens `/authorize` with the ticket.

A ticket is valid once, for two minutes, for the client, origin and browser that requested it. Without the binding to the browser, an
attacker could use a ticket to log another user in to the attacker's account (login CSRF).
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from datetime import timedelta

from django.utils import timezone

from authapi.login.flow import ProvenUser
from authapi.models import Client, LoginTicket
from foundation.secrets.random_secrets import digest_of, new_secret

LIFE = timedelta(minutes=2)
_LONGEST = 64


@dataclass(frozen=True)
class IssuedTicket:
    """A ticket, and the verifier that the page stores under `co_id` for browsers that block third-party cookies."""

    ticket: str = field(repr=False)
    co_id: str
    verifier: str = field(repr=False)


def issue_ticket(client: Client, proven: ProvenUser, *, browser: str, origin: str = "") -> IssuedTicket:
    """Store the login and return its ticket. `browser` is the value of the browser's cookie."""
    issued = IssuedTicket(new_secret(), new_secret(), new_secret())
    LoginTicket(
        tenant_id=client.tenant_id,
        digest=digest_of(issued.ticket),
        browser_digest=digest_of(browser),
        verifier_digest=digest_of(issued.verifier),
        co_id=issued.co_id[:_LONGEST],
        origin=origin,
        client=client,
        user=proven.user,
        connection=proven.connection,
        methods=list(proven.methods),
        expires_at=timezone.now() + LIFE,
    ).save(force_insert=True)
    return issued


def waiting_ticket(client: Client, ticket: str) -> LoginTicket | None:
    """Return the row of a ticket that is valid for this client and whose user may still log in."""
    if not 0 < len(ticket) <= _LONGEST:
        return None
    rows = LoginTicket.objects.of(client.tenant_id).filter(digest=digest_of(ticket), client=client, expires_at__gt=timezone.now())
    row = rows.select_related("user__connection", "connection").first()
    return None if row is None or row.user.blocked else row


def is_of_browser(row: LoginTicket, browser: str) -> bool:
    """Tell whether the ticket was issued to the browser with this cookie."""
    return bool(browser) and hmac.compare_digest(row.browser_digest, digest_of(browser))


def is_of_page(row: LoginTicket, verifier: str) -> bool:
    """Tell whether the page in this browser has the verifier of the ticket."""
    return bool(verifier) and bool(row.verifier_digest) and hmac.compare_digest(row.verifier_digest, digest_of(verifier))


def redeemed(row: LoginTicket) -> ProvenUser | None:
    """Use up a ticket and return its user; None if another request has already used the ticket."""
    # Only one of two concurrent deletions finds the row.
    count, _ = LoginTicket.objects.of(row.tenant_id).filter(pk=row.pk).delete()
    return ProvenUser(row.user, row.connection, tuple(row.methods)) if count else None
