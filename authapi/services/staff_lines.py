"""Lines of the administrative log for changes by staff and by users at their account page.

Each entry of the audit log about a tenant has one line, or two lines for a deleted user. The lines are written in the same transaction.

A line has less data than its audit entry: it names the fields that changed, not their values. The platform's own staff appear without
their names, because clients of the tenant may not see these names.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import Exists, Model, OuterRef

from authapi.edge.addresses import stored_address
from authapi.models import AdministrativeLine
from authapi.services.administrative_log import DELETED_USER, OPERATION, insert, note_work
from foundation.change_context import current_change_context
from foundation.ids import new_sign_in_id
from foundation.json_values import storable
from identity.hosts import scheme
from identity.models import AuditEntry, Staff, Tenant, User

PLATFORM_STAFF = "Platform operator"
_VERBS = {AuditEntry.Kind.ADD: "Create", AuditEntry.Kind.CHANGE: "Update", AuditEntry.Kind.DELETE: "Delete"}


def note_entry(entry: AuditEntry, row: Model | None, **_: Any) -> None:
    """Write the line of the administrative log for an entry of the audit log.

    For a change by staff or by a user in a tenant, this module makes the line. For a write of a client, `administrative_log` makes it.
    """
    if entry.actor_kind == "client":
        note_work()
    if entry.actor_kind == "user" and entry.tenant_id is not None:
        insert([_line_of(entry, row, code, tenant_id=entry.tenant_id, is_own=True) for code in _codes(entry, row)])
    if entry.actor_kind != "staff" or entry.tenant_id is None:
        return
    account = int(entry.actor_id) if entry.actor_id.isdecimal() else 0
    is_own = Exists(Staff.objects.filter(pk=account, tenant_id=OuterRef("pk")))
    known = Tenant.objects.filter(pk=entry.tenant_id).annotate(is_own=is_own).values_list("is_own", flat=True).first()
    if known is None:
        # The tenant no longer exists, so it has no log.
        return
    insert([_line_of(entry, row, code, tenant_id=entry.tenant_id, is_own=known) for code in _codes(entry, row)])


def _codes(entry: AuditEntry, row: Model | None) -> tuple[str, ...]:
    is_deleted_user = isinstance(row, User) and entry.kind == AuditEntry.Kind.DELETE
    return (OPERATION, DELETED_USER) if is_deleted_user else (OPERATION,)


def _line_of(entry: AuditEntry, row: Model | None, code: str, *, tenant_id: str, is_own: bool) -> AdministrativeLine:
    name = entry.actor_name if is_own else PLATFORM_STAFF
    return AdministrativeLine(
        id=new_sign_in_id(),
        tenant_id=tenant_id,
        type=code,
        is_success=True,
        description=_description(entry),
        user_id=_user_of(entry, row) or (entry.actor_id if entry.actor_kind == "user" else ""),
        user_name=storable(name)[:300],
        ip=stored_address(entry.ip) if is_own else None,
        user_agent=storable(entry.user_agent)[:500] if is_own else "",
        details=_details(entry, row, name=name, is_own=is_own),
    )


def _description(entry: AuditEntry) -> str:
    verb = _VERBS.get(AuditEntry.Kind(entry.kind))
    if verb is None or not entry.object_type:
        return storable(entry.act)[:500]
    thing = str(apps.get_model(entry.object_type)._meta.verbose_name)
    return f"{verb} {'an' if thing[0].lower() in 'aeio' else 'a'} {thing}"


def _details(entry: AuditEntry, row: Model | None, *, name: str, is_own: bool) -> dict[str, Any]:
    """Return actor, channel and object, and the names of changed fields. The values of the fields are only in the audit log."""
    who = {"name": name} | ({"email": entry.actor_name} if is_own else {})
    asked = current_change_context().request or {}
    method = {"method": str(asked["method"]).lower()} if asked.get("method") else {}
    # Users change their account at a host of their tenant. Staff work at the platform host.
    place = f"{asked.get('hostname', '')}/account" if entry.actor_kind == "user" else f"{settings.PLATFORM_HOST}/admin/"
    details: dict[str, Any] = {
        "request": {**method, "channel": f"{scheme()}://{place}", "auth": {"user": who, "strategy": "session"}},
    }
    if entry.object_type:
        key = row.user_id if isinstance(row, User) else entry.object_id
        details["object"] = {"type": entry.object_type.partition(".")[2], "id": key, "name": entry.object_text}
    if entry.kind == AuditEntry.Kind.CHANGE:
        details["changed"] = sorted(entry.after or {})
    if entry.act:
        details["act"] = entry.act
    if is_own and entry.reason:
        details["reason"] = entry.reason[:1_000]
    return details


def _user_of(entry: AuditEntry, row: Model | None) -> str:
    """Return the id of the user that is this row, or to whom the row belongs; empty if that user no longer exists."""
    if isinstance(row, User):
        return row.user_id
    owned = row is not None and any(column.name == "user" and column.related_model is User for column in row._meta.fields)
    if not owned or entry.tenant_id is None:
        return ""
    key: int = getattr(row, "user_id", None) or 0
    return User.objects.of(entry.tenant_id).filter(pk=key).values_list("user_id", flat=True).first() or ""
