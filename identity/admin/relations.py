"""Admin pages of rows that join two other rows. Staff can add and delete these rows. Only rows that join a connection to an organization
can be changed.
"""

from __future__ import annotations

from typing import Any, TypeVar

from django.db import models
from django.http import HttpRequest
from django.utils.text import capfirst

from identity.admin.people.labels import label_of
from identity.admin.service_admin import ServiceAdmin
from identity.models import User

Row = TypeVar("Row", bound=models.Model)


class RelationAdmin(ServiceAdmin[Row]):
    """The base of the admin pages. `joined` names the joined columns. A subclass implements `join` and deletion through its services."""

    joined: tuple[str, ...] = ()
    # The title of a row's page, with the names of the joined columns in braces.
    described = ""
    # One or two sentences above the form of a new row.
    hint = ""
    sortable_by = ()
    ordering = ("-pk",)

    def get_list_display(self, request: HttpRequest) -> Any:
        shown = self.with_names_of_users((*self.joined, "created_at", "tenant"), "user_name")
        return [name for name in shown if name != "tenant" or not self.is_bound(request)]

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> Any:
        return self.with_names_of_users(self.joined[-1:], "user_name")

    def get_autocomplete_fields(self, request: HttpRequest) -> Any:
        return self.joined

    def get_fieldsets(self, request: HttpRequest, obj: Row | None = None) -> Any:
        shown = [*self.with_names_of_users(self.joined, "user_page"), "created_at"]
        return [(None, {"fields": list(self.joined), "description": self.hint})] if obj is None else [(None, {"fields": shown})]

    def get_readonly_fields(self, request: HttpRequest, obj: Row | None = None) -> Any:
        return () if obj is None else (*self.joined, "user_page", "created_at")

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False

    def heading_of(self, row: Row) -> str:
        """Return the title of the row's page, with the names of the joined rows."""
        named = {name: getattr(row, name) for name in self.joined}
        return capfirst(self.described.format(**{name: label_of(one) if isinstance(one, User) else one for name, one in named.items()}))

    def create(self, request: HttpRequest, form: Any) -> Row:
        """Join the chosen rows and return the relation. If the relation exists already, it is kept."""
        tenant = self.tenant_for_new(request)
        chosen = {name: form.cleaned_data.get(name) for name in self.joined}
        self.join(tenant, **chosen)
        return self.model._default_manager.get(tenant_id=tenant, **chosen)  # type: ignore[no-any-return]  # rows of the model

    def join(self, tenant_id: str, **chosen: Any) -> None:
        """Join the chosen rows through a service."""
        raise NotImplementedError
