"""Relations that go with the user, role, group or organization they point to: in one order, the roots locked first.

What depends on a row goes before the row, so a consumer never sees a relation of something that is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from identity.hooks import changes_together
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
    found: list[Sequence[RecordedModel]] = []
    left = limit
    for model in _ORDERS[column]:
        rows = model.objects.of(tenant_id).filter(**target).order_by("pk")
        found.append(list(rows if left is None else rows[:left]))
        left = None if left is None else left - len(found[-1])
    _lock_parents(row for rows in found for row in rows)
    with changes_together():
        return sum(_delete_rows(tenant_id, rows) for rows in found if rows)


def lock_parents_of_users(*, tenant_id: str, keys: Sequence[int]) -> set[int]:
    """Lock what several users belong to, in the one order; return those of them that belong to anything."""
    members = OrganizationMember.objects.of(tenant_id).filter(user__in=keys)
    in_groups = GroupMember.objects.of(tenant_id).filter(user__in=keys)
    _lock_parents([*members, *in_groups])
    return {row.user_id for row in members} | {row.user_id for row in in_groups if row.user_id is not None}


def _delete_rows(tenant_id: str, rows: Sequence[RecordedModel]) -> int:
    """Delete relations of one kind together; memberships that have roles one by one, each after its roles."""
    model, keys = type(rows[0]), [row.pk for row in rows]
    members = [row for row in rows if isinstance(row, OrganizationMember)]
    if members and OrganizationMemberRole.objects.of(tenant_id).filter(member__in=members).exists():
        return sum(_delete_member(tenant_id, member) for member in members)
    model.objects.of(tenant_id).filter(pk__in=keys).delete()
    return len(keys)


def _delete_member(tenant_id: str, member: OrganizationMember) -> int:
    roles = OrganizationMemberRole.objects.of(tenant_id).filter(member=member)
    count = len(roles)
    roles.delete()
    member.delete()
    return count + 1


def _lock_parents(rows: Iterable[RecordedModel]) -> None:
    """Lock organizations, then groups, each in id order, before the first row goes."""
    keys: dict[Any, set[Any]] = {Organization: set(), Group: set()}
    for row in rows:
        parent, key = row.root()
        keys[parent].add(key)
    for parent, wanted in keys.items():
        lock_rows(parent, wanted)
