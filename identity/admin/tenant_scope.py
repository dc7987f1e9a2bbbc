"""The base of every admin class: shows only rows of the tenant in scope. The site refuses other admin classes."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import quote, unquote
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.db import DataError, models
from django.forms import Media
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import conditional_escape, escape, format_html
from django.utils.http import urlencode
from django.utils.text import capfirst

from foundation.admin.bounded_paginator import BoundedPaginator
from foundation.admin.field_labels import spelled
from foundation.admin.list_filters import is_offered, scoped_filter
from foundation.admin.related_choice import RelatedChoice
from identity.admin.bulk_progress import jobs_at_work
from identity.admin.noting import Noting
from identity.admin.paged_by_keys import PagedByKeys
from identity.admin.people.labels import label_of
from identity.admin.scope import TENANT_FIELDS, is_operator, only_tenant, staff_of, tenant_in_scope, tenant_path
from identity.models import Tenant, User

Row = TypeVar("Row", bound=models.Model)
_SCRIPTS_OF_SLUGS = ("urlify.js", "prepopulate.js", "xregexp.js", "xregexp.min.js")


class TenantScopedAdmin(PagedByKeys, Noting[Row]):
    """Limits lists, choices, filters, histories and objects to the tenant in scope, and sets the tenant of new rows.

    `tenant_lookup` is the lookup to the tenant's id if the row has no tenant column, such as `action__tenant_id`.
    Rows without a tenant belong to the platform: only operators see them.
    """

    tenant_lookup: str = ""
    # The text of an empty list: one sentence that says what the list will contain, or what to do.
    # Default: "No" with the name of the rows.
    empty_text: str = ""
    # `list_title`: the title of the list if the model's plural is unclear. `about`: one sentence about the content of the list.
    list_title: str = ""
    about: str = ""
    # The name of one row and of several rows, if the names of the model are unclear.
    row_names: tuple[str, str] = ("", "")
    # Keep the cost of a list constant: never count the whole table, and bound the count of matches.
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = BoundedPaginator
    list_per_page = 50
    list_max_show_all = 0
    # URLs without a scheme get https.
    formfield_overrides = {models.URLField: {"assume_scheme": "https"}}
    view_on_site = False
    change_form_template = "admin/row_form.html"
    # Whether the title of a row's page has the name of the row's user.
    is_named_by_user = False
    # The title of a row's page, with columns of `row` in braces. Default: the text of the row.
    titled = ""

    @property
    def tenant_column(self) -> str | None:
        return self.tenant_lookup or tenant_path(self.model)

    @property
    def media(self) -> Media:
        """Leave out the scripts that fill in slugs: no form has slugs, and the scripts are as large as all other files together."""
        whole = super().media
        return Media(css=whole._css, js=[path for path in whole._js if not path.endswith(_SCRIPTS_OF_SLUGS)])  # type: ignore[attr-defined]  # django-stubs omits both

    # Rows

    def is_bound(self, request: HttpRequest) -> bool:
        """Tell whether the request is limited to one tenant."""
        return tenant_in_scope(request) is not None

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Row]:
        return self.limited(request, super().get_queryset(request))

    def limited(self, request: HttpRequest, rows: models.QuerySet[Row]) -> models.QuerySet[Row]:
        """Return the rows that the account may see."""
        tenant = tenant_in_scope(request)
        column = self.tenant_column
        if column is None:
            return rows if is_operator(request) else rows.none()
        return rows if tenant is None else rows.filter(**{column: tenant})

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Row:
        """Return the row. Raises 404 if it does not exist or belongs to another tenant."""
        found = super().get_object(request, object_id, from_field)
        if found is None:
            raise Http404
        return found

    def tenant_of(self, row: Row) -> str | None:
        """Return the id of the tenant that owns the row."""
        column = self.tenant_column
        value: Any = row
        for name in (column or "").split("__"):
            value = getattr(value, name) if column else None
        return None if value is None else str(value)

    # Choices

    def scoped_choices(self, request: HttpRequest, model: type[models.Model]) -> models.QuerySet[Any]:
        """Return the rows of `model` that forms and filters of this request may offer."""
        tenant = getattr(request, "_form_tenant", None) or tenant_in_scope(request)
        rows: models.QuerySet[Any] = models.QuerySet(model)
        column = tenant_path(model)
        if self.admin_site.is_registered(model):
            other = self.admin_site.get_model_admin(model)
            rows, column = other.get_queryset(request), getattr(other, "tenant_column", column)
        if column is None:
            return rows if is_operator(request) else rows.none()
        return rows if tenant is None else rows.filter(**{column: tenant})

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """Remove the links next to a choice, except the link that adds a row."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and isinstance(field.widget, RelatedFieldWidgetWrapper):
            field.widget = RelatedChoice(field.widget)
        return field

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        kwargs["queryset"] = self.scoped_choices(request, db_field.remote_field.model)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        kwargs["queryset"] = self.scoped_choices(request, db_field.remote_field.model)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_list_filter(self, request: HttpRequest) -> Any:
        return [scoped_filter(self.model, item) for item in super().get_list_filter(request)]

    def get_search_fields(self, request: HttpRequest) -> Any:
        """Compare exact terms case-sensitively; a case-insensitive comparison would not use an index."""
        return [f"{name[1:]}__exact" if name.startswith("=") else name for name in super().get_search_fields(request)]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow a filter in the URL of the list only if the list offers this filter.

        Django allows filters on every column of the row. A client could then read a hidden column, such as a password hash, letter by
        letter, and a regular expression could keep the database busy for hours.
        """
        name = lookup.partition("__")[0]
        columns = {column for field in self.model._meta.get_fields() for column in (field.name, getattr(field, "attname", field.name))}
        is_column = name == "pk" or name in columns
        return super().lookup_allowed(lookup, value, request) and (
            not is_column or is_offered(self.model, lookup, self.get_list_filter(request))
        )

    # The tenant column: shown in lists of several tenants, never a choice

    def get_list_display(self, request: HttpRequest) -> Any:
        columns = self.with_names_of_users(super().get_list_display(request), "user_name")
        if tenant_in_scope(request) is None:
            return columns
        return [column for column in columns if column not in TENANT_FIELDS]

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> Any:
        links = super().get_list_display_links(request, list_display)
        return links and self.with_names_of_users(links, "user_name")

    # The user of a row: shown by name and email address

    def with_names_of_users(self, names: Any, shown: str) -> list[Any]:
        """Return the columns or fields with `shown` in place of a foreign key `user`, which Django shows as the id."""
        is_named = any(field.name == "user" and field.related_model is User for field in self.model._meta.fields)
        return [shown if is_named and name == "user" else name for name in names]

    @admin.display(description="User")
    def user_name(self, row: Any) -> str:
        return label_of(row.user)

    @admin.display(description="User")
    def user_page(self, row: Any) -> str:
        """Return the name of the user with a link to the user's page, and the id."""
        user: User | None = row.user
        if user is None:
            return "-"
        page = reverse(f"{self.admin_site.name}:identity_user_change", args=(quote(user.pk),))
        return format_html('<a href="{}">{}</a> <code>{}</code>', page, label_of(user), user.user_id)

    def get_readonly_fields(self, request: HttpRequest, obj: Row | None = None) -> Any:
        fields = list(super().get_readonly_fields(request, obj))
        own = [field.name for field in self.model._meta.fields if field.name in TENANT_FIELDS]
        return [*fields, *(name for name in own if name not in fields)]

    def get_fieldsets(self, request: HttpRequest, obj: Row | None = None) -> Any:
        """Leave the tenant out of the form of a new row: the server sets it."""
        fieldsets = super().get_fieldsets(request, obj)
        if obj is not None and tenant_in_scope(request) is None:
            return fieldsets
        return [
            (title, {**options, "fields": [name for name in options["fields"] if name not in TENANT_FIELDS]})
            for title, options in fieldsets
        ]

    def get_form(self, request: HttpRequest, obj: Row | None = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        # Choices of a form belong to the tenant of its row, also for operators who see all tenants.
        request._form_tenant = self.tenant_of(obj) if obj is not None else tenant_in_scope(request)  # type: ignore[attr-defined]
        kwargs.setdefault("help_texts", self._escaped_help_texts())
        return super().get_form(request, obj, change=change, **kwargs)

    def _escaped_help_texts(self) -> dict[str, str]:
        """Return the escaped help texts of the fields. Django renders them as HTML, and some texts contain `<kind>:<id>`."""
        own = getattr(getattr(self.form, "Meta", None), "help_texts", None) or {}
        return {field.name: escape(field.help_text) for field in self.model._meta.fields if field.help_text} | own

    def save_model(self, request: HttpRequest, obj: Row, form: Any, change: bool) -> None:  # noqa: FBT001
        if not change and self.needs_tenant:
            obj.tenant_id = self.tenant_for_new(request)  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    @property
    def needs_tenant(self) -> bool:
        """Whether a new row of this model must have a tenant."""
        return self.model is not Tenant and any(field.name in TENANT_FIELDS and not field.null for field in self.model._meta.fields)

    def tenant_for_new(self, request: HttpRequest) -> str:
        """Return the tenant of a new row. Raises 404 if there are several tenants and the operator has chosen none."""
        tenant = tenant_in_scope(request) or only_tenant()
        if tenant is None:
            raise Http404
        return tenant

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the form of a new row. Redirect an operator who sees several tenants to the choice of a tenant."""
        if self.needs_tenant and self.has_add_permission(request) and not (self.is_bound(request) or only_tenant()):
            chooser = reverse(f"{self.admin_site.name}:choose_tenant")
            return HttpResponseRedirect(f"{chooser}?{urlencode({'next': request.get_full_path()})}")
        return super().add_view(request, form_url, extra_context)

    # The page of a row

    def response_add(self, request: HttpRequest, obj: Row, post_url_continue: str | None = None) -> HttpResponse:
        """Return the response with a message in which the row has the name from the heading of its page."""
        return super().response_add(request, self._named(obj), post_url_continue)

    def response_change(self, request: HttpRequest, obj: Row) -> HttpResponse:
        """Return the response with a message in which the row has the name from the heading of its page."""
        return super().response_change(request, self._named(obj))

    def _named(self, row: Row) -> Row:
        # Django builds its messages with `format_html`. It uses the method `__html__` if the row has one, otherwise `__str__`.
        setattr(row, "__html__", lambda: conditional_escape(self.heading_of(row)))  # noqa: B010  (mypy knows no such attribute)
        return row

    def heading_of(self, row: Row) -> str:
        """Return the title of the row's page: the name that staff use for the object."""
        if self.titled:
            return self.titled.format(row=row)
        if not self.is_named_by_user:
            return str(row)
        user: User | None = getattr(row, "user", None)
        return f"{self.kind_of_row} {row.pk}" if user is None else f"{self.kind_of_row} of {label_of(user)}"

    @property
    def kind_of_row(self) -> str:
        """What a row is, such as "Signing key"."""
        return str(capfirst(self.row_names[0] or spelled(str(self.opts.verbose_name))))

    def badge_of(self, row: Row) -> str:
        """Return the state of the row as a badge beside the title; empty where the model has no state. Default: the column `state`."""
        state = getattr(self, "state", None)
        return str(state(row)) if callable(state) else ""

    def history_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the audit entries of the row below its kind and name."""
        row = self.get_object(request, unquote(object_id))
        named = {"title": f"History: {self.heading_of(row)}", "kind": self.kind_of_row}
        return super().history_view(request, object_id, {**named, **(extra_context or {})})

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Show the head of the row's page. A subclass with tabs or actions has set its parts of the context already."""
        row = context.get("original")
        if row is not None and "kind" not in context:
            context |= {
                "title": self.heading_of(row),
                "subtitle": None,
                "kind": self.kind_of_row,
                "badge": self.badge_of(row),
                "has_history": True,
                "is_form_shown": True,
            }
        return super().render_change_form(request, context, *args, **kwargs)

    # Permissions

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return self._may_see(request) and super().has_view_permission(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._may_see(request) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return self._may_see(request) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return self._may_see(request) and super().has_delete_permission(request, obj)

    def _may_see(self, request: HttpRequest) -> bool:
        if staff_of(request) is None:
            return False
        return is_operator(request) or self.tenant_column is not None

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        try:
            changelist = super().get_changelist_instance(request)
        except (DataError, OverflowError) as error:
            # The URL can contain values that the column cannot store or compare. No earlier check refuses them, so the query fails.
            raise IncorrectLookupParameters(error) from error
        changelist.jobs_at_work = partial(jobs_at_work, request, self.model)  # type: ignore[attr-defined]
        changelist.title = self.list_title or capfirst(str(self.opts.verbose_name_plural))
        one, many = str(self.opts.verbose_name), str(self.opts.verbose_name_plural)
        names = self.row_names if self.row_names[0] else (spelled(one), spelled(many))
        changelist.row_names = names  # type: ignore[attr-defined]
        changelist.empty_text = self.empty_text or f"No {names[1]}."  # type: ignore[attr-defined]
        return changelist


class ReadOnlyAdmin(TenantScopedAdmin[Row]):
    """Rows that only the service writes: read-only for all staff."""

    # Fields that the page of a row shows only if they have a value.
    hidden_if_empty: tuple[str, ...] = ()

    def get_fieldsets(self, request: HttpRequest, obj: Row | None = None) -> Any:
        hidden = {name for name in self.hidden_if_empty if obj is not None and not self._value_of(obj, name)}
        named = [
            (
                title,
                {**options, "fields": self.with_names_of_users([name for name in options["fields"] if name not in hidden], "user_page")},
            )
            for title, options in super().get_fieldsets(request, obj)
        ]
        return [(title, options) for title, options in named if options["fields"]]

    def _value_of(self, row: Row, name: str) -> Any:
        """Return the value of a column, or the text that the page shows in a computed field."""
        return getattr(row, name) if hasattr(row, name) else getattr(self, name)(row).strip("-\N{EN DASH}")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False
