"""Provides the data about an invitation that the pages of a login show."""

from __future__ import annotations

from authapi.login.decision import Offer
from authapi.login.login import Login


def invitation_notice(login: Login) -> dict[str, str] | None:
    """Return the inviter, the organization and the invited address. Return None if the login has no open invitation."""
    invitation = login.invitation if login.offer is Offer.OPEN else None
    if invitation is None:
        return None
    organization = invitation.organization
    return {"inviter": invitation.inviter_name, "organization": organization.display_name or organization.name, "email": invitation.email}
