"""The audit log in the admin: changes with their author, time, IP address and reason, and with the values before and after. Entries are
read-only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC
from typing import Any
from uuid import UUID

from django import forms
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, QueryDict, StreamingHttpResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.text import capfirst

from foundation.admin.badges import Tone, badge
from foundation.admin.field_labels import column_label, spelled
from foundation.admin.list_cells import two_lines
from foundation.admin.moment_fields import Moment
from foundation.admin.panels import Cell, Panel
from foundation.admin.streamed import streamed_file
from foundation.database.keyset_pages import KeysetPage, read_place
from foundation.differences import differences
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.people.labels import NamesUsers, label_of
from identity.admin.people.relation_names import joined_names, relation_texts
from identity.admin.scope import tenant_in_scope
from identity.admin.tenant_scope import ReadOnlyAdmin
from identity.audit.browsing import CONTENT_TYPES, Format, Question, browse, exported
from identity.audit.entries import record
from identity.audit.row_audit import watched
from identity.models import AuditEntry, User

_EXPORT = "identity.export_auditentry"
_APPS = ("identity", "authapi", "events", "provisioning")
_TONES: dict[str, Tone] = {"add": "good", "change": "quiet", "delete": "bad", "act": "warn"}
_ACTORS = {"staff": "Staff", "client": "Client", "command": "Command line", "service": "Service"}


class AuditSearch(forms.Form):
    """The search of the audit log. All fields are optional. Times are UTC. `types` maps the label of each kind of object to its name."""

    actor = forms.CharField(
        required=False, max_length=254, label="Who", help_text="Email address of a staff account, or the name of a client."
    )
    kind = forms.ChoiceField(required=False, choices=[("", "Everything"), *AuditEntry.Kind.choices], label="What was done")
    object_type = forms.ChoiceField(required=False, label="Kind of object")
    object_id = forms.CharField(required=False, max_length=400, label="Id of the object")
    since = forms.DateTimeField(required=False, widget=Moment, label="From time")
    until = forms.DateTimeField(required=False, widget=Moment, label="To time")
    act = forms.UUIDField(required=False, widget=forms.HiddenInput)

    def __init__(self, data: QueryDict, types: Mapping[str, str], **options: Any) -> None:
        super().__init__(data, **options)
        self.fields["object_type"].choices = [("", "Everything"), *types.items()]  # type: ignore[attr-defined]  # it is a ChoiceField

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("since") and values.get("until") and values["since"] > values["until"]:
            self.add_error("until", "“To time” is before “From time”. Enter a later time.")
        return values

    @property
    def is_used(self) -> bool:
        return any(value not in ("", None) for value in self.cleaned_data.values())

    def question(self, tenant_id: str | None) -> Question:
        """Return the search as filters for one tenant or all tenants."""
        values = self.cleaned_data
        act: UUID | None = values["act"]
        return Question(
            tenant_id=tenant_id,
            actor=values["actor"].strip(),
            kind=values["kind"],
            object_type=values["object_type"],
            object_id=values["object_id"].strip(),
            act_id=str(act) if act else "",
            since=values["since"] and values["since"].astimezone(UTC),
            until=values["until"] and values["until"].astimezone(UTC),
        )

    def address(self, **place: str) -> str:
        """Return the query string of the same search. `place` has the parameters that select a page."""
        asked = {field: value for field, value in self.data.items() if field in self.fields and value}
        return f"?{urlencode({**asked, **place})}"


class AuditChangeList(ChangeList):
    """Django's list, except that `AuditSearch` and `browse` select the rows. A page begins after the key of a row, so the list needs
    neither a count nor an offset."""

    search: AuditSearch
    page: KeysetPage[AuditEntry]

    def get_queryset(self, request: HttpRequest, *_arguments: Any, **_named: Any) -> Any:
        page_of_log: Any = self.model_admin
        self.search = AuditSearch(request.GET, page_of_log.types(), label_suffix="")
        is_valid = self.search.is_valid()
        question = self.search.question(tenant_in_scope(request)) if is_valid else None
        self.page = browse(question, read_place(request.GET)) if question else KeysetPage([])
        self.filter_specs, self.has_filters, self.clear_all_filters_qs = [], False, "?"
        self.has_active_filters = not is_valid or self.search.is_used
        return self.root_queryset.none()

    def get_results(self, request: HttpRequest) -> None:
        self.result_list = self.page.rows
        self.result_count = self.full_result_count = len(self.page.rows)
        self.show_full_result_count = self.show_admin_actions = self.can_show_all = self.multi_page = False
        self.paginator = self.model_admin.get_paginator(request, self.root_queryset.none(), self.list_per_page)


class AuditEntryAdmin(NamesUsers, ReadOnlyAdmin[AuditEntry], ObjectActionsAdmin[AuditEntry]):
    list_display = ("when", "who", "what", "object", "changed", "reason", "ip", "tenant_id")
    list_display_links = ("when",)
    sortable_by = ()
    change_list_template = "admin/audit_log.html"
    change_form_template = "admin/audit_entry.html"
    has_history = False
    hidden_if_empty = ("ip", "user_agent", "reason", "more")
    empty_text = "No changes yet. Each change by staff, the management interface or a command appears here at once and stays."
    readonly_fields = ("when", "who", "kind_of_actor", "what", "object_page", "same_act", "more")
    fields = ("when", "who", "kind_of_actor", "ip", "user_agent", "what", "object_page", "reason", "more", "same_act", "tenant_id")

    def __init__(self, model: type[AuditEntry], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        self.panels.append(_values)

    def get_urls(self) -> list[URLPattern]:
        export = path("export/", self.admin_site.admin_view(self.export_view), name="identity_auditentry_export")
        return [export, *super().get_urls()]

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> AuditEntry:
        """Return the entry with the name of the user that it is about. For a relation, add the names of the rows that it joins."""
        row: Any = super().get_object(request, object_id, from_field)
        if row is not None:
            row.names_by_column = joined_names(request, [row]).get(row.pk, {})
            row.relation_text = ", ".join(row.names_by_column.values())
        return row  # type: ignore[no-any-return]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return AuditChangeList

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        response = super().changelist_view(request, extra_context)
        listed = getattr(response, "context_data", None)
        if listed and "cl" in listed:
            texts = relation_texts(request, listed["cl"].result_list)
            for row in listed["cl"].result_list:
                row.relation_text = texts.get(row.pk, "")
            search, page = listed["cl"].search, listed["cl"].page
            listed["older_url"] = search.address(before=page.older) if page.older else ""
            listed["newer_url"] = search.address(after=page.newer) if page.newer else ""
            listed["newest_url"] = search.address() if page.newer else ""
            if request.user.has_perm(_EXPORT):
                place = reverse(f"{self.admin_site.name}:identity_auditentry_export")
                listed["export_urls"] = {form: place + search.address(format=form) for form in CONTENT_TYPES}
        return response

    def export_view(self, request: HttpRequest) -> StreamingHttpResponse:
        """Stream the results of the search as a file, and note the export in the audit log."""
        if not (self.has_view_permission(request) and request.user.has_perm(_EXPORT)):
            raise PermissionDenied
        search = AuditSearch(request.GET, self.types())
        if not search.is_valid():
            raise Http404
        form: Format = "jsonl" if request.GET.get("format") == "jsonl" else "csv"
        question = search.question(tenant_in_scope(request))
        record(f"Exported the audit log as {form}", tenant_id=question.tenant_id, search=search.address())
        return streamed_file(request, exported(question, form), name=f"audit-log.{form}", content_type=CONTENT_TYPES[form])

    @admin.display(description="When (UTC)")
    def when(self, row: AuditEntry) -> str:
        return f"{row.at:%Y-%m-%d %H:%M:%S}"

    @admin.display(description="Who")
    def who(self, row: AuditEntry) -> str:
        return format_html('<a href="{}?{}">{}</a>', self._list(), urlencode({"actor": row.actor_name}), row.actor_name)

    @admin.display(description="Kind of actor")
    def kind_of_actor(self, row: AuditEntry) -> str:
        return _ACTORS.get(row.actor_kind, row.actor_kind)

    @admin.display(description="What")
    def what(self, row: AuditEntry) -> str:
        word = badge(row.get_kind_display(), _TONES.get(row.kind, "quiet"))
        return two_lines(word, f"by {row.act}" if row.is_by_command else row.act)

    @admin.display(description="Object")
    def object(self, row: AuditEntry) -> str:
        if not row.object_type:
            return "-"
        asked = urlencode({"object_type": row.object_type, "object_id": row.object_id})
        kind, text = self._type_in_words(row.object_type), self._text_of(row)
        return two_lines(format_html('<a href="{}?{}">{}</a>', self._list(), asked, text), kind)

    @admin.display(description="Changed")
    def changed(self, row: AuditEntry) -> str:
        names = [column_label(row.object_type, name) for name in (row.after or {})] if row.kind == AuditEntry.Kind.CHANGE else []
        return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "") or "-"

    @admin.display(description="Object")
    def object_page(self, row: AuditEntry) -> str:
        """Return the name of the object. It is a link if the object has a page and the entry is not about the deletion of the object."""
        text = f"{self._type_in_words(row.object_type)} {self._text_of(row)}"
        try:
            place = reverse(f"{self.admin_site.name}:{row.object_type.replace('.', '_')}_change", args=(quote(row.object_id),))
        except NoReverseMatch:
            return text
        return text if row.kind == AuditEntry.Kind.DELETE else format_html('<a href="{}">{}</a>', place, text)

    @admin.display(description="Changes made together")
    def same_act(self, row: AuditEntry) -> str:
        return format_html(
            '<a href="{}?{}">Show all changes of this request or command</a>', self._list(), urlencode({"act": str(row.act_id)})
        )

    @admin.display(description="Details")
    def more(self, row: AuditEntry) -> str:
        return "; ".join(f"{name.replace('_', ' ')}: {value}" for name, value in row.facts.items()) or "-"

    def heading_of(self, row: AuditEntry) -> str:
        """Return what was done, with the object by name, such as "Changed user: Ada Lovelace (ada@example.com)"."""
        return f"{row.done}: {self._text_of(row)}" if row.object_type and self._text_of(row) else row.done

    def badge_of(self, row: AuditEntry) -> str:
        return badge(row.get_kind_display(), _TONES.get(row.kind, "quiet"))

    def types(self) -> dict[str, str]:
        """Return the names of the kinds of rows that entries can be about, by the label of the model, in alphabetical order."""
        labels = {model._meta.label_lower for model in {*watched(), *self.admin_site._registry} if model._meta.app_label in _APPS}
        return dict(sorted(((label, self._type_in_words(label)) for label in labels), key=lambda named: named[1].lower()))

    def _type_in_words(self, label: str) -> str:
        """Return the name of a kind of row, or the label if its model no longer exists."""
        try:
            model = apps.get_model(label)
        except (LookupError, ValueError):
            return label or "-"
        page: Any = self.admin_site._registry.get(model)
        return page.kind_of_row if page else capfirst(spelled(str(model._meta.verbose_name)))

    def user_id_in(self, row: AuditEntry) -> str:
        """Return the id of the user that the entry is about. Entries store the id as the text of the object."""
        return row.object_text if row.object_type == User._meta.label_lower else ""

    def _text_of(self, row: AuditEntry) -> str:
        user = self.user_of(row)
        if user is not None:
            return label_of(user)
        return getattr(row, "relation_text", "") or row.object_text or row.object_id

    def _list(self) -> str:
        return reverse(f"{self.admin_site.name}:identity_auditentry_changelist")


def _values(_request: HttpRequest, row: Any) -> Panel | None:
    """Return the values before and after, field by field. An added row has no values before, and a deleted row has no values after."""
    if row.before is None and row.after is None:
        return None
    names, model = row.names_by_column, row.object_type
    rows = [
        (Cell(column_label(model, one.path)), Cell(_named(names, one.path, one.before)), Cell(_named(names, one.path, one.after)))
        for one in differences(row.before or {}, row.after or {})
    ]
    rows += [
        (Cell(column_label(model, name)), Cell(_shown(json.dumps(value))), Cell("Changed, never shown"))
        for name, value in (row.before or {}).items()
        if row.after is not None and value == row.after.get(name, ...)
    ]
    return Panel("Before and after", ("Field", "Before", "After"), rows, "The entry contains no changed values.")


def _named(names: Mapping[str, str], column: str, value: str | None) -> str:
    """Return the name of a joined row in place of its key."""
    return names[column] if column in names and value is not None else _shown(value)


def _shown(value: str | None) -> str:
    if value is None:
        return ""
    plain = json.loads(value)
    return plain if isinstance(plain, str) and plain else value
