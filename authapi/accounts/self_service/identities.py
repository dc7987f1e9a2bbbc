"""The identities with which a user logs in to one account: the primary identity and the linked identities."""

from __future__ import annotations

from authapi.accounts.self_service.own_act import OwnAct, own_act
from identity.models import LinkedIdentity, User
from identity.services.users import unlink_identity


def linked_to(user: User) -> list[LinkedIdentity]:
    """Return the linked identities in the order in which they were linked."""
    return list(user.linked_identities.select_related("connection").order_by("pk"))


@own_act("Unlinked a login")
def unlink(own: OwnAct, user: User, *, provider: str, identifier: str) -> None:
    """Unlink an identity from the account. The identity becomes a separate account. The sessions that began with this identity end.

    Raises `NotFound` for an identity of another user, `NotSupported` for the primary identity, and `AlreadyExists` if another user now has
    the email address of the identity.
    """
    unlink_identity(tenant_id=user.tenant_id, user_id=user.user_id, provider=provider, identifier=identifier)
