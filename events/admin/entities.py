"""Shows the entities of events by their names: a user by name and email address, other entities by name, each with a link to its page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import ChangeList
from django.db.models import CharField, F, Q, QuerySet, Value
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from events.models import LogEntry
from foundation.admin.badges import badge
from foundation.admin.list_cells import short_id
from foundation.admin.panels import Cell
from identity.admin.people.labels import label_of
from identity.admin.scope import staff_of
from identity.models import Connection, Group, Organization, Role, User

# For each kind of entity: the model, the field with the identifier, and the fields that can contain a name, in order of preference.
_KINDS: Mapping[str, tuple[type[Any], str, tuple[str, ...]]] = {
    "user": (User, "user_id", ("name", "email", "username", "phone_number")),
    "connection": (Connection, "id", ("display_name", "name")),
    "group": (Group, "id", ("name",)),
    "organization": (Organization, "id", ("display_name", "name")),
    "role": (Role, "id", ("name",)),
}
_MOST_NAMES = 4
DELETED = "Deleted"
# The id of a tenant, and an entity of the tenant as `<kind>:<id>`.
Root = tuple[str, str]


@dataclass(frozen=True)
class Entity:
    """The name of an entity, and the URL of its page. Without a URL, the name is the id."""

    root: str
    text: str
    url: str = ""
    is_deleted: bool = False

    @property
    def kind(self) -> str:
        return self.root.partition(":")[0]

    @property
    def identifier(self) -> str:
        return self.root.partition(":")[2] or self.root

    @property
    def cell(self) -> Cell:
        """Return the cell of a table: the name with a link. If the entity has no page, `<kind>:<id>` with a button that copies this
        text. The note of a deleted entity is a sentence: beside an event, the single word "Deleted" could mean a deleted event."""
        note = f"This {self.kind} no longer exists." if self.is_deleted else ""
        return Cell(self.text, self.url) if self.url else Cell("", copied=self.root, note=note)

    @property
    def listed(self) -> SafeString | str:
        """Return the name for a list of rows, without a link. If the entity has no page, return a short form of `<kind>:<id>`."""
        if self.url:
            return self.text
        marked = '<div class="cell-lines">{} {}</div>'
        return format_html(marked, short_id(self.root), badge(DELETED)) if self.is_deleted else short_id(self.root)

    @property
    def shown(self) -> SafeString:
        """Return the text for the page of a row: the name with a link, and the id with a button that copies the id."""
        named = format_html('<a href="{}">{}</a> ', self.url, self.text) if self.url else badge(DELETED) if self.is_deleted else ""
        return format_html("{}{}", named, short_id(self.identifier))


def entities_of(site: admin.AdminSite, request: HttpRequest, named: Iterable[Root]) -> dict[Root, Entity]:
    """Return the name and the page of each entity, with one query for all entities.

    An entity without a row is marked as deleted. There is no page for a deleted entity, and none for an entity that the account may not
    see.
    """
    staff = staff_of(request)
    wanted = {pair: pair[1].partition(":") for pair in named}
    asked: dict[str, set[Root]] = {}
    for (tenant_id, _), (kind, _, identifier) in wanted.items():
        if kind in _KINDS and staff is not None and staff.has_perm(f"identity.view_{kind}"):
            asked.setdefault(kind, set()).add((tenant_id, identifier))
    found = {(tenant_id, kind, identifier): rest for kind, tenant_id, identifier, *rest in _rows_of(asked)}
    return {
        pair: _entity(site, pair[1], found.get((pair[0], kind, identifier)), is_read=kind in asked)
        for pair, (kind, _, identifier) in wanted.items()
    }


def _entity(site: admin.AdminSite, root: str, row: list[str] | None, *, is_read: bool) -> Entity:
    kind, _, identifier = root.partition(":")
    if row is None:
        return Entity(root, identifier or root, is_deleted=is_read)
    key, *names = row
    text = next((name for name in names if name), identifier)
    if kind == "user":
        text = label_of(User(user_id=identifier, **dict(zip(_KINDS[kind][2], names, strict=True))))
    return Entity(root, text, reverse(f"{site.name}:identity_{kind}_change", args=(quote(key),)))


def _rows_of(asked: Mapping[str, set[Root]]) -> Iterable[Any]:
    """Return kind, tenant, identifier, primary key and names of the entities that exist."""
    parts = [_rows_of_kind(kind, pairs) for kind, pairs in sorted(asked.items())]
    return parts[0].union(*parts[1:], all=True) if parts else ()


def _rows_of_kind(kind: str, pairs: set[Root]) -> QuerySet[Any, Any]:
    model, column, names = _KINDS[kind]
    identifiers: dict[str, set[str]] = {}
    for tenant_id, identifier in pairs:
        identifiers.setdefault(tenant_id, set()).add(identifier)
    wanted = Q()
    for tenant_id, ids in identifiers.items():
        wanted |= Q(tenant_id=tenant_id, **{f"{column}__in": ids})
    text = CharField()
    shown: list[Any] = [*(F(name) for name in names), *(Value("", text) for _ in range(_MOST_NAMES - len(names)))]
    key = Cast("pk", text)
    rows: QuerySet[Any, Any] = model.all_tenants.filter(wanted).order_by()
    return rows.values_list(Value(kind, text), "tenant_id", F(column), key, *shown)


def entity_of(site: admin.AdminSite, request: HttpRequest, *, tenant_id: str, root: str) -> Entity:
    """Return the entity `<kind>:<id>` of a tenant."""
    return entities_of(site, request, [(tenant_id, root)])[tenant_id, root]


def name_entities(site: admin.AdminSite, request: HttpRequest, entries: Iterable[LogEntry]) -> None:
    """Set `entity` of each entry of the log to the entity of its event, with one query."""
    rows: list[Any] = list(entries)
    found = entities_of(site, request, [(row.tenant_id, row.event.root) for row in rows])
    for row in rows:
        row.entity = found[row.tenant_id, row.event.root]


class NamesEntities:
    """Names the entities of rows that store `<kind>:<id>`, with one query per page of a list."""

    entity_column = "key"

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        changelist: ChangeList = super().get_changelist_instance(request)  # type: ignore[misc]  # Django's class comes after this one
        self.name_rows(request, changelist.result_list)
        return changelist

    def name_rows(self, request: HttpRequest, rows: Iterable[Any]) -> None:
        """Set `entity` of each row, with one query."""
        named = [(row, (row.tenant_id, getattr(row, self.entity_column))) for row in rows]
        found = entities_of(self.admin_site, request, [root for _, root in named])  # type: ignore[attr-defined]
        for row, root in named:
            row.entity = found[root]

    @admin.display(description="Entity")
    def about_entity(self, row: Any) -> str:
        """Return the entity of a row in a list."""
        named: Entity = row.entity
        return named.listed


def entry_cell(site: admin.AdminSite, request: HttpRequest, *, tenant_id: str, event: int) -> Cell:
    """Return a link to the entry of an event in the log.

    There is no link if the log no longer contains the event, or if the account may not see the log.
    """
    entry = LogEntry.objects.filter(tenant_id=tenant_id, event_id=event).values_list("pk", flat=True).first()
    if entry is None:
        return Cell("No longer in the event log")
    may_see = site.get_model_admin(LogEntry).has_view_permission(request)
    return Cell("Entry in the event log", reverse(f"{site.name}:events_logentry_change", args=(quote(entry),)) if may_see else "")
