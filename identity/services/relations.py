"""Deletes relations together with the user, role, group or organization that they refer to.

The order is always the same. The main rows (roots) of the documents that contain the relations are locked first.

Dependents of a row are deleted before the row, so no consumer sees a relation of a deleted object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby
from typing import Any

from django.db import models

from foundation.database.transactions import lock_rows
from foundation.hooks import changes_together
from identity.models import (
    Group,
    GroupMember,
    GroupRole,
    Organization,
    OrganizationConnection,
    OrganizationGroupRole,
    OrganizationMember,
    OrganizationMemberRole,
    User,
)
from identity.models.base import RecordedModel

# Relations to delete for each kind of target, in this order.
_ORDERS: dict[str, tuple[type[RecordedModel], ...]] = {
    "user": (OrganizationMember, GroupMember),
    "role": (GroupRole, OrganizationGroupRole, OrganizationMemberRole),
    "group": (GroupMember, GroupRole, OrganizationGroupRole),
    "nested_group": (GroupMember,),
    "organization": (OrganizationMemberRole, OrganizationGroupRole, OrganizationMember, OrganizationConnection),
    "connection": (OrganizationConnection,),
}


def delete_relations(*, tenant_id: str, limit: int | None = None, **target: Any) -> int:
    """Delete up to `limit` relations of the target, such as `user=...` or `role=...`. Returns the number of deleted rows.

    The roles of a membership are deleted before the membership. Call inside a transaction, with the target's own root locked.
    """
    (column,) = target
    rows = _found(tenant_id, _ORDERS[column], target, limit)
    _lock_parents(rows)
    with changes_together(_place_by_user if column == "user" else None):
        return _delete_rows(tenant_id, rows)


def delete_users(users: models.QuerySet[User], limit: int) -> int:
    """Delete the first users of this query set, each after its memberships. Returns the number of deleted rows.

    All users must belong to one tenant. Deletes at most `limit` rows, memberships included. Exception: if the first user has more
    memberships than this, deletes this one user completely. Call inside a transaction.
    """
    chunk = list(users.order_by("pk")[:limit])
    if not chunk:
        return 0
    # Lock all roots at once and in key order, as all other code does, to avoid deadlocks.
    lock_rows(User, [user.pk for user in chunk])
    tenant_id = chunk[0].tenant_id
    keys = _within(limit, tenant_id, [user.pk for user in chunk])
    rows = _found(tenant_id, _ORDERS["user"], {"user__in": keys}, None)
    _lock_parents(rows)
    with changes_together(_place_by_user):
        deleted = _delete_rows(tenant_id, rows)
        User.objects.of(tenant_id).filter(pk__in=keys).delete()
    return deleted + len(keys)


def _within(limit: int, tenant_id: str, keys: list[int]) -> list[int]:
    """Return the first users that fit into one chunk together with their memberships. Returns at least one user."""
    memberships = Counter(row.user_id for row in _found(tenant_id, _ORDERS["user"], {"user__in": keys}, None))  # type: ignore[attr-defined]
    rows = accumulate(1 + memberships[key] for key in keys)
    return [key for key, so_far in zip(keys, rows, strict=True) if so_far <= limit or key == keys[0]]


def _found(tenant_id: str, kinds: Iterable[type[RecordedModel]], target: dict[str, Any], limit: int | None) -> list[RecordedModel]:
    rows: list[RecordedModel] = []
    for model in kinds:
        of_kind = model.objects.of(tenant_id).filter(**target).order_by("pk")
        rows += of_kind if limit is None else of_kind[: limit - len(rows)]
    return rows


def _delete_rows(tenant_id: str, rows: Sequence[RecordedModel]) -> int:
    """Delete relations in the given order. Consecutive rows of one model are deleted together.

    The roles of memberships are deleted before the memberships. Returns the number of deleted rows.
    """
    deleted = 0
    for model, run in groupby(rows, key=_kind):
        keys = [row.pk for row in run]
        if model is OrganizationMember:
            roles = OrganizationMemberRole.objects.of(tenant_id).filter(member__in=keys)
            deleted += roles.delete()[0]
        model.objects.of(tenant_id).filter(pk__in=keys).delete()
        deleted += len(keys)
    return deleted


def _kind(row: RecordedModel) -> type[RecordedModel]:
    return type(row)


def _place_by_user(row: models.Model) -> tuple[int, ...]:
    """Return the sort key of a row: relations of a user come before the user, and roles of a membership come before the membership."""
    match row:
        case OrganizationMemberRole():
            return row.user_id, 0, row.member_id, 0, row.pk
        case OrganizationMember():
            return row.user_id, 0, row.pk, 1
        case GroupMember():
            return row.user_id or 0, 1, row.pk
        case _:
            return row.pk, 2


def _lock_parents(rows: Iterable[RecordedModel]) -> None:
    """Lock organizations, then groups, each in id order, before the first row is deleted."""
    keys: dict[Any, set[Any]] = {Organization: set(), Group: set()}
    for row in rows:
        parent, key = row.root()
        keys[parent].add(key)
    for parent, wanted in keys.items():
        lock_rows(parent, wanted)
