"""Confirming and forgetting links between users and accounts, by people."""

from __future__ import annotations

from collections.abc import Iterable

from identity.services.failures import Conflict
from provisioning.models.account_links import UNCONFIRMED, AccountLink


def confirm_links(*, tenant_id: str, link_ids: Iterable[int]) -> int:
    """Let links of the tenant that wait for it authorize writes from now on; return how many did.

    Raises `Conflict` for an account that another user or tenant is linked to.
    """
    suspects = AccountLink.objects.filter(UNCONFIRMED, tenant_id=tenant_id, pk__in=list(link_ids))
    for suspect in suspects:
        others = AccountLink.objects.filter(server=suspect.server, remote_id=suspect.remote_id, ended=None, is_suspect=False)
        if others.exclude(tenant_id=tenant_id, user_id=suspect.user_id).exists():
            raise Conflict(f"The account {suspect.remote_id} is linked to another user.")
    return suspects.update(is_suspect=False, origin=AccountLink.Origin.ADOPTED)


def forget_link(*, tenant_id: str, link_id: int) -> bool:
    """Delete a link of the tenant; the next event finds the account by its key, or not at all. False when it is gone."""
    deleted, _ = AccountLink.objects.filter(tenant_id=tenant_id, pk=link_id).delete()
    return bool(deleted)
