"""Adds entries to the audit log: `record` writes an entry about an act, `record_row` an entry about the change of one row.

Both functions write in the caller's transaction. No other code adds entries, except the import of a tenant that moves here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.db import models

from foundation.acting import SERVICE, Act, Actor, current_act
from foundation.hooks import audit_noted
from foundation.secrets.hidden_values import differing, shown, whole
from identity.models import AuditEntry, Tenant
from identity.purging import path_to_tenant

Image = Mapping[str, Any]


def record(
    act: str,
    *,
    about: models.Model | None = None,
    tenant_id: str | None = None,
    reason: str = "",
    before: Image | None = None,
    after: Image | None = None,
    actor: Actor | None = None,
    ip: str | None = None,
    user_agent: str = "",
    **facts: Any,
) -> AuditEntry:
    """Write an entry that `act` was done, such as "Enrolled a passkey", about the row `about` or about the tenant.

    The present act supplies the actor and the IP address. Pass `actor`, `ip` and `user_agent` where there is no present act, as
    during a login. `before` and `after` are all values of the row; the entry keeps only the differences. Values whose names look
    like secrets are hidden; even so, callers must not pass a secret. `facts` are further details. Call inside the transaction of the
    change.
    """
    present = current_act()
    if actor is not None or present is None:
        present = Act(actor or SERVICE, ip=ip, user_agent=user_agent)
    entry = _entry(present, AuditEntry.Kind.ACT, act)
    entry.reason = reason or present.reason
    entry.tenant_id = tenant_id if about is None else tenant_of(about)
    _name(entry, about)
    if before is not None and after is not None:
        entry.before, entry.after = differing(before, _decided(after))
    elif before is not None or after is not None:
        entry.before, entry.after = (None if image is None else whole(image) for image in (before, after))
    entry.facts |= {name: shown(name, value) for name, value in facts.items() if value not in (None, "", (), [], {})}
    return _saved(entry, about)


def record_row(act: Act, row: models.Model, before: Image | None, after: Image | None) -> None:
    """Write an entry that `act` added, deleted or changed a row. Writes no entry if the only differences are in columns that the service
    maintains."""
    if before is not None and after is not None:
        was, became = differing(before, _decided(after))
        if not was:
            return
        entry = _entry(act, AuditEntry.Kind.CHANGE, act.label)
        entry.before, entry.after = was, became
    elif after is not None:
        entry = _entry(act, AuditEntry.Kind.ADD, act.label)
        entry.after = whole(after)
    else:
        entry = _entry(act, AuditEntry.Kind.DELETE, act.label)
        entry.before = whole(before or {})
    entry.reason = act.reason
    entry.tenant_id = tenant_of(row)
    _name(entry, row)
    _saved(entry, row)


# Columns that the service updates together with other columns, or without an actor.
_KEPT_BY_THE_SERVICE = frozenset({"updated_at", "updated", "last_login", "auth_version"})


def _decided(image: Image) -> Image:
    return {name: value for name, value in image.items() if name not in _KEPT_BY_THE_SERVICE}


def _entry(act: Act, kind: AuditEntry.Kind, label: str) -> AuditEntry:
    return AuditEntry(
        act_id=act.id,
        kind=kind,
        act=label[:200],
        actor_kind=act.actor.kind,
        actor_id=act.actor.id[:128],
        actor_name=act.actor.name[:254],
        ip=act.ip or None,
        user_agent=act.user_agent[:300].replace("\x00", ""),
        facts={"job": act.job} if act.job else {},
    )


def _saved(entry: AuditEntry, row: models.Model | None) -> AuditEntry:
    entry.save(force_insert=True)
    audit_noted.send(sender=None, entry=entry, row=row)
    return entry


def _name(entry: AuditEntry, row: models.Model | None) -> None:
    if row is not None:
        entry.object_type = row._meta.label_lower
        entry.object_id = str(row.pk)[:400]
        entry.object_text = str(row)[:200]


def is_noted(row: models.Model, key: str | None = None) -> bool:
    """Tell whether the present act already has an entry about the row."""
    act = current_act()
    if act is None:
        return False
    about = AuditEntry.objects.filter(act_id=act.id, object_type=row._meta.label_lower, object_id=key or str(row.pk))
    return about.exists()


def image_of(row: models.Model) -> dict[str, Any] | None:
    """Return the columns of the row as stored now, or None if the row does not exist."""
    return images_of(models.QuerySet(type(row)).filter(pk=row.pk)).get(row.pk)


def images_of(rows: models.QuerySet[Any]) -> dict[Any, dict[str, Any]]:
    """Return the stored columns of each row, by key."""
    key = rows.model._meta.pk.attname
    shown = getattr(rows.model, "shown_image", None)
    images: models.QuerySet[Any, dict[str, Any]] = models.QuerySet(rows.model).filter(pk__in=rows.values("pk")).values()
    return {image[key]: image if shown is None else shown(image) for image in images}


def tenant_of(row: models.Model) -> str | None:
    """Return the id of the tenant that owns the row, or None for rows of the platform."""
    if isinstance(row, Tenant):
        return str(row.pk)
    value: Any = row
    for name in _path(type(row)):
        value = getattr(value, name, None)
    return None if value is None or value is row else str(value)


@cache
def _path(model: type[models.Model]) -> tuple[str, ...]:
    return tuple((path_to_tenant(model) or "").split("__")) if path_to_tenant(model) else ()
