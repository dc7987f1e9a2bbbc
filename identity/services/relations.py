"""Relations that go with the user, role, group or organization they point to: in one order, the roots locked first.

What depends on a row goes before the row, so a consumer never sees a relation of something that is gone.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from identity.models import (
    Group,
    GroupMember,
    GroupRole,
    Organization,
    OrganizationConnection,
    OrganizationGroupRole,
    OrganizationMember,
    OrganizationMemberRole,
)
from identity.models.base import RecordedModel
from identity.transactions import lock_rows

# What goes with each kind of target, in this order.
_ORDERS: dict[str, tuple[type[RecordedModel], ...]] = {
    "user": (OrganizationMember, GroupMember),
    "role": (GroupRole, OrganizationGroupRole, OrganizationMemberRole),
    "group": (GroupMember, GroupRole, OrganizationGroupRole),
    "nested_group": (GroupMember,),
    "organization": (OrganizationMemberRole, OrganizationGroupRole, OrganizationMember, OrganizationConnection),
    "connection": (OrganizationConnection,),
}


def delete_relations(*, tenant_id: str, limit: int | None = None, **target: Any) -> int:
    """Delete up to `limit` relations of the target, such as `user=...` or `role=...`; return how many went.

    A membership takes its roles with it, before itself. Call inside a transaction, the target's own root locked already.
    """
    (column,) = target
    _lock_parents(tenant_id, _ORDERS[column], target)
    deleted = 0
    for model in _ORDERS[column]:
        rows = model.objects.of(tenant_id).filter(**target).order_by("pk")
        for row in rows if limit is None else rows[: limit - deleted]:
            if isinstance(row, OrganizationMember):
                for role in row.roles.order_by("pk"):
                    role.delete()
            row.delete()
            deleted += 1
    return deleted


def _lock_parents(tenant_id: str, models: tuple[type[RecordedModel], ...], target: dict[str, Any]) -> None:
    """Lock organizations, then groups, each in id order, before the first row goes."""
    for parent, column in ((Organization, "organization_id"), (Group, "group_id")):
        tables = [model for model in models if model().root()[0] is parent]
        keys = chain.from_iterable(model.objects.of(tenant_id).filter(**target).values_list(column, flat=True) for model in tables)
        lock_rows(parent, keys)
