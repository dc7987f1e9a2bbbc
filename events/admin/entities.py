"""Names the entity of an event for readers: a user by email address, a connection by name, each with a link to its page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from events.models import LogEntry
from foundation.admin.panels import Cell
from identity.admin.people.labels import label_of, users_by_id
from identity.admin.scope import staff_of
from identity.models import Connection, Group, Organization, User
from identity.models.base import RecordedModel

_USER = "user:"
# For each kind of entity: the model, the identifier, and the fields that can name it, in order of preference.
_KINDS: dict[str, tuple[type[RecordedModel], str, tuple[str, ...]]] = {
    "user": (User, "user_id", ("email", "name")),
    "connection": (Connection, "id", ("display_name", "name")),
    "group": (Group, "id", ("name",)),
    "organization": (Organization, "id", ("display_name", "name")),
}


@dataclass(frozen=True)
class Entity:
    """The name of an entity, and the address of its page. Both depend on the permissions of the member of staff."""

    kind: str
    text: str
    url: str = ""


def entity_of(site: admin.AdminSite, request: HttpRequest, *, tenant_id: str, root: str) -> Entity:
    """Return the entity `<kind>:<id>` of a tenant. A deleted entity, or an entity that the account may not see, is named by its id."""
    kind, _, identifier = root.partition(":")
    staff = staff_of(request)
    if kind not in _KINDS or staff is None or not staff.has_perm(f"identity.view_{kind}"):
        return Entity(kind, identifier or root)
    model, column, names = _KINDS[kind]
    found = model.objects.of(tenant_id).filter(**{column: identifier}).values_list("pk", *names).first()
    if found is None:
        return Entity(kind, identifier)
    key, *values = found
    text = next((str(value) for value in values if value), identifier)
    return Entity(kind, text, reverse(f"{site.name}:identity_{kind}_change", args=(quote(key),)))


def name_roots(entries: Iterable[LogEntry], *, may_see_users: bool) -> None:
    """Set the text that lists show for the entity of each entry: a user by name and email address, other entities by their id."""
    rows: list[Any] = list(entries)
    named = {(row.tenant_id, row.event.root.removeprefix(_USER)) for row in rows if row.event.root.startswith(_USER)}
    users = users_by_id(named if may_see_users else ())
    for row in rows:
        user = users.get((row.tenant_id, row.event.root.removeprefix(_USER)))
        row.root_text = row.event.root if user is None else label_of(user)


def entry_cell(site: admin.AdminSite, *, tenant_id: str, event: int, event_id: str) -> Cell:
    """Return the id of an event as a link to its entry in the log; without a link if the log no longer contains it."""
    entry = LogEntry.objects.filter(tenant_id=tenant_id, event_id=event).values_list("pk", flat=True).first()
    return Cell(event_id, "" if entry is None else reverse(f"{site.name}:events_logentry_change", args=(quote(entry),)))


def history_of(site: admin.AdminSite, root: str) -> str:
    """Return the address of all events of an entity in the log."""
    return f"{reverse(f'{site.name}:events_logentry_changelist')}?{urlencode({'entity': root})}"
