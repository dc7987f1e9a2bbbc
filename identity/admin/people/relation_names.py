"""Names of the rows that a relation joins, such as the user and the organization of a membership, for the audit log.

A password and a second factor count as relations of one user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Model
from django.http import HttpRequest

from identity.admin.people.labels import label_of
from identity.models import AuditEntry, Connection, Group, Organization, Role, User

# The columns of relations, in the order in which the names of the joined rows are in a text.
_JOINED: Mapping[str, type[Model]] = {
    "role_id": Role,
    "connection_id": Connection,
    "user_id": User,
    "nested_group_id": Group,
    "group_id": Group,
    "organization_id": Organization,
}
_CREDENTIAL = "identity.passwordcredential"
_RELATIONS = {
    "identity.organizationconnection",
    "identity.organizationmember",
    "identity.organizationmemberrole",
    "identity.organizationgrouprole",
    "identity.groupmember",
    "identity.grouprole",
    "identity.userrole",
    _CREDENTIAL,
    "identity.enrolledfactor",
    "authapi.userpermission",
    "authapi.rolepermission",
}


def relation_texts(request: HttpRequest, entries: Iterable[AuditEntry]) -> dict[Any, str]:
    """Return the texts of the entries about relations, by the key of the entry. Makes at most one query per kind of joined row."""
    return {pk: ", ".join(names.values()) for pk, names in joined_names(request, entries).items()}


def joined_names(request: HttpRequest, entries: Iterable[AuditEntry]) -> dict[Any, dict[str, str]]:
    """Return the names of the joined rows by column, for each entry about a relation.

    The name of a row is its key if the row no longer exists, or if the account may not see it.
    """
    joined = {entry.pk: (entry.tenant_id, found) for entry in entries if (found := _joined_by(entry))}
    names = _names(request, joined.values())
    return {
        pk: {column: names.get((tenant_id, _JOINED[column], key), str(key)) for column, key in found.items()}
        for pk, (tenant_id, found) in joined.items()
    }


def _joined_by(entry: AuditEntry) -> dict[str, Any]:
    """Return the keys of the joined rows by column. An entry stores them in its values before the change, or in those after it."""
    if entry.object_type not in _RELATIONS:
        return {}
    values = {**(entry.before or {}), **(entry.after or {})}
    if entry.object_type == _CREDENTIAL and entry.object_id.isdecimal():
        # The key of a password is the key of its user. The entry of a changed password has only the changed columns.
        values["user_id"] = int(entry.object_id)
    return {column: values[column] for column in _JOINED if values.get(column)}


def _names(request: HttpRequest, joined: Iterable[tuple[str | None, dict[str, Any]]]) -> dict[tuple[str | None, type[Model], Any], str]:
    asked: dict[type[Model], set[tuple[str | None, Any]]] = {}
    for tenant_id, keys in joined:
        for column, key in keys.items():
            if request.user.has_perm(f"identity.view_{_JOINED[column]._meta.model_name}"):
                asked.setdefault(_JOINED[column], set()).add((tenant_id, key))
    found: dict[tuple[str | None, type[Model], Any], str] = {}
    for model, pairs in asked.items():
        # An operator sees entries of several tenants. The name of a row is shown only in entries of the same tenant.
        rows = model.all_tenants.filter(tenant_id__in={one for one, _ in pairs}, pk__in={key for _, key in pairs})  # type: ignore[attr-defined]
        found |= {(row.tenant_id, model, row.pk): _name_of(row) for row in rows}
    return found


def _name_of(row: Any) -> str:
    if isinstance(row, User):
        return label_of(row)
    return str(getattr(row, "display_name", "") or row.name)
