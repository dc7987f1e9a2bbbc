"""Relations that go with the user, role, group or organization they point to: in one order, the roots locked first.

The order is roles of members, members, roles of groups in organizations, members of groups, roles of groups: what
depends on a row goes before the row, so a consumer never sees a relation of something that is gone.
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

_ORDER: tuple[type[RecordedModel], ...] = (
    OrganizationMemberRole,
    OrganizationMember,
    OrganizationGroupRole,
    OrganizationConnection,
    GroupMember,
    GroupRole,
)


def delete_relations(*, tenant_id: str, limit: int | None = None, **target: Any) -> int:
    """Delete up to `limit` relations whose column, such as `user` or `role`, is the target; return how many went.

    Relations without that column are not touched. Call inside a transaction, the target's own root locked already.
    """
    (column,) = target
    models = [model for model in _ORDER if column in {field.name for field in model._meta.concrete_fields}]
    _lock_parents(tenant_id, models, target)
    deleted = 0
    for model in models:
        rows = model.objects.of(tenant_id).filter(**target).order_by("pk")
        for row in rows if limit is None else rows[: limit - deleted]:
            row.delete()
            deleted += 1
    return deleted


def _lock_parents(tenant_id: str, models: list[type[RecordedModel]], target: dict[str, Any]) -> None:
    """Lock organizations, then groups, each in id order, before the first row goes."""
    for parent, column in ((Organization, "organization_id"), (Group, "group_id")):
        tables = [model for model in models if model().root()[0] is parent]
        keys = chain.from_iterable(model.objects.of(tenant_id).filter(**target).values_list(column, flat=True) for model in tables)
        lock_rows(parent, keys)
