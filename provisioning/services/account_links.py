"""Confirms and deletes account links on behalf of administrators."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from foundation.database.transactions import lock_names
from identity.services.failures import Conflict
from provisioning.models.account_links import UNCONFIRMED, AccountLink


def confirm_links(*, tenant_id: str, link_ids: Iterable[int]) -> int:
    """Confirm these unconfirmed links of the tenant, all or none, so that they authorize writes; return the number of confirmed links.

    Raises `Conflict` if another user or tenant is linked to one of the accounts, even if the same call has just confirmed that link.
    """
    with transaction.atomic():
        waiting = AccountLink.objects.filter(UNCONFIRMED, tenant_id=tenant_id, pk__in=list(link_ids)).order_by("pk")
        # Several suspects, even of several tenants, can name the same account, so locks of rows do not prevent concurrent confirmations.
        lock_names(f"account:{link.server}:{link.remote_id}" for link in waiting)
        return sum(_confirm(link) for link in waiting)


def _confirm(link: AccountLink) -> int:
    same_account = AccountLink.objects.filter(server=link.server, remote_id=link.remote_id)
    others = same_account.filter(ended=None, is_suspect=False).exclude(tenant_id=link.tenant_id, user_id=link.user_id)
    if others.exists():
        raise Conflict(f"The account {link.remote_id} is linked to another user.")
    return same_account.filter(UNCONFIRMED, pk=link.pk).update(is_suspect=False, origin=AccountLink.Origin.ADOPTED)


def forget_link(*, tenant_id: str, link_id: int) -> bool:
    """Delete a link of the tenant. Later events can find the account only by its key. Return False if the link does not exist."""
    deleted, _ = AccountLink.objects.filter(tenant_id=tenant_id, pk=link_id).delete()
    return bool(deleted)
