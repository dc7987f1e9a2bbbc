"""The invitation of a login, found by its ticket, for one client and one organization."""

from __future__ import annotations

import hmac

from django.core import signing
from django.utils import timezone

from authapi.login.decision import Offer
from authapi.models import Client, Invitation, Session
from foundation.secrets.random_secrets import digest_of

# Seconds within which the user must log in and accept after opening the mailed link.
MARK_SECONDS = 3600
_SALT = "authapi.invitation"
_LONGEST_TICKET = 128
_DIGEST_PART = 16


def wished_invitation(client: Client, ticket: str, organization: str) -> Invitation | None:
    """Return the invitation of a ticket, even if it was accepted or has expired; None if it is for another client or organization.

    `organization` is the id or name in the request.
    """
    if not 0 < len(ticket) <= _LONGEST_TICKET:
        return None
    rows = Invitation.objects.of(client.tenant_id).select_related("organization", "connection", "client")
    found = rows.filter(digest=digest_of(ticket), client=client).first()
    if found is None or organization not in (found.organization_id, found.organization.name):
        return None
    return found


def offer_of(invitation: Invitation | None, session: Session | None) -> Offer | None:
    """Return the state of the invitation with which a login is requested; None if the user of the session has accepted it."""
    if invitation is None or invitation.organization.is_being_deleted:
        return Offer.GONE
    if invitation.accepted_at is not None:
        is_own = session is not None and session.user_id == invitation.accepted_by_id
        return None if is_own else Offer.GONE
    return Offer.OPEN if invitation.state_at(timezone.now()) is Invitation.State.PENDING else Offer.GONE


def mark_of(invitation: Invitation) -> str:
    """Return the cookie value of a browser that has opened the mailed link.

    The value is valid for this invitation, until another mail is sent.
    """
    return _signer(invitation).sign(f"{invitation.pk}.{invitation.mail_digest[:_DIGEST_PART]}")


def is_marked(invitation: Invitation, mark: str) -> bool:
    """Tell whether a browser has opened the latest mail of this invitation."""
    return bool(mark and invitation.mail_digest) and hmac.compare_digest(mark.encode(), mark_of(invitation).encode())


def _signer(invitation: Invitation) -> signing.Signer:
    return signing.Signer(salt=f"{_SALT}:{invitation.tenant_id}")
