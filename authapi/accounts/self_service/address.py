"""A person asks for another e-mail address: a link goes there, and it counts once it was confirmed."""

from __future__ import annotations

from authapi.accounts.self_service.own_act import OwnAct, own_act
from authapi.edge.rate_figures import ADDRESS_CHANGES
from authapi.edge.throttling import Rate
from identity.mail.address_changes import start_address_change
from identity.models import User

_ASKED = "scer"


def may_change_address(user: User) -> bool:
    """Tell whether the address is the user's own to change: elsewhere a provider vouches for it, or it is how they log in."""
    return user.connection.is_database


@own_act("Asked for another e-mail address")
def ask_for_address(own: OwnAct, user: User, *, email: str) -> Rate | None:
    """Mail a link to the address, if no other user has it; return the rate of what is used up where too many were asked for."""
    if not ADDRESS_CHANGES.takes(user.tenant_id, user.user_id):
        return Rate.of_empty(ADDRESS_CHANGES)
    start_address_change(user=user, email=email, client_id=own.client.client_id, address=own.host.issuer.rstrip("/"))
    own.record("Asked for another e-mail address")
    return None
