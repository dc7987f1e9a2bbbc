"""Lets users request another email address. The service mails a link to the new email address. When the user confirms the link, the email
address changes."""

from __future__ import annotations

from authapi.accounts.self_service.own_act import OwnAct, own_act
from authapi.edge.rate_figures import ADDRESS_CHANGES
from authapi.edge.throttling import Rate
from identity.mail.address_changes import start_address_change
from identity.models import User

_ASKED = "scer"


def may_change_address(user: User) -> bool:
    """Tell whether the user may change the email address. False if a provider manages the address, or if the user logs in with the
    address."""
    return user.connection.is_database


@own_act("Requested another email address")
def ask_for_address(own: OwnAct, user: User, *, email: str) -> Rate | None:
    """Mail a link to the new email address if no other user has the address. Return None.

    After too many requests, mail nothing and return the exceeded limit.
    """
    if not ADDRESS_CHANGES.takes(user.tenant_id, user.user_id):
        return Rate.of_empty(ADDRESS_CHANGES)
    start_address_change(user=user, email=email, client_id=own.client.client_id, address=own.host.issuer.rstrip("/"))
    own.record("Requested another email address")
    return None
