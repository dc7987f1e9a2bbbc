"""The logins elsewhere that open an account: the primary one, and those that were linked to it."""

from __future__ import annotations

from authapi.accounts.self_service.own_act import OwnAct, own_act
from identity.models import LinkedIdentity, User
from identity.services.users import unlink_identity


def linked_to(user: User) -> list[LinkedIdentity]:
    """Return the linked identities in the order of linking."""
    return list(user.linked_identities.select_related("connection").order_by("pk"))


@own_act("Unlinked a login")
def unlink(own: OwnAct, user: User, *, provider: str, identifier: str) -> None:
    """Take a linked identity off the account; it is an account of its own again, and what was begun through it ends.

    Raises `ServiceError`: `NotFound` for an identity of another user, `NotSupported` for the primary one, `AlreadyExists`.
    """
    unlink_identity(tenant_id=user.tenant_id, user_id=user.user_id, provider=provider, identifier=identifier)
