"""Labels of users on pages: the name and the email address."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from foundation.admin.list_cells import short_id
from foundation.admin.panels import Cell
from identity.models import User

_ROOT = "user:"
MAY_SEE_USERS = "identity.view_user"
# The columns that a label is made of.
LABEL_COLUMNS = ("pk", "tenant_id", "user_id", "email", "name", "username", "phone_number")


def name_of(user: User) -> str:
    """Return the first value that the user has: name, email address, user name, phone number or id."""
    return user.name or user.email or user.username or user.phone_number or user.user_id


def label_of(user: User | None) -> str:
    """Return the name and the email address of a user on one line; a dash for a row without a user."""
    if user is None:
        return "-"
    name = name_of(user)
    return f"{name} ({user.email})" if user.email and user.email != name else name


def person_cell(user: User, url: str = "") -> Cell:
    """Return the cell of a user: the name, the email address below it, and the id with a button that copies it."""
    name = name_of(user)
    return Cell(name, url, note=user.email if user.email and user.email != name else "", copied=user.user_id)


def users_by_id(named: Iterable[tuple[str, str]]) -> dict[tuple[str, str], User]:
    """Return the users with these ids, by tenant and user id, with one query. Users that no longer exist are left out."""
    by_tenant: dict[str, set[str]] = {}
    for tenant_id, user_id in named:
        by_tenant.setdefault(tenant_id, set()).add(user_id)
    if not by_tenant:
        return {}
    asked = Q()
    for tenant_id, ids in by_tenant.items():
        asked |= Q(tenant_id=tenant_id, user_id__in=ids)
    found = User.all_tenants.filter(asked).only(*LABEL_COLUMNS)
    return {(user.tenant_id, user.user_id): user for user in found}


class NamesUsers:
    """Shows the name of the user in rows that store the id of a user as text. Needs one query per page of a list.

    A staff account without permission to see users gets the ids.
    """

    # The column that contains the user id, or an entity such as `user:database|abc`.
    user_column = "key"

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        changelist: ChangeList = super().get_changelist_instance(request)  # type: ignore[misc]  # Django's class comes after this one
        rows: Any = changelist.result_list
        self._name_rows(request, rows)
        for row in rows:
            row.is_listed = True
        return changelist

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the row with its user."""
        row: Any = super().get_object(request, object_id, from_field)  # type: ignore[misc]  # Django's class comes after this one
        if row is not None:
            self._name_rows(request, [row])
        return row

    def _name_rows(self, request: HttpRequest, rows: Iterable[Any]) -> None:
        named = [(row, (self.tenant_id_of(row), self.user_id_in(row))) for row in rows]
        may_see = request.user.has_perm(MAY_SEE_USERS)
        found = users_by_id(user for _, user in named if user[1]) if may_see else {}
        for row, user in named:
            row.named_user = found.get(user)

    def tenant_id_of(self, row: Any) -> str:
        """Return the tenant of the user. For a model without a tenant column, the subclass overrides this method."""
        return str(row.tenant_id)

    def user_id_in(self, row: Any) -> str:
        """Return the id of the user that the row is about; empty for rows about other entities."""
        text = str(getattr(row, self.user_column) or "")
        return text if self.user_column != "key" else text.removeprefix(_ROOT) if text.startswith(_ROOT) else ""

    def user_of(self, row: Any) -> User | None:
        """Return the user of the row.

        None if the row is about another entity, if the user no longer exists, or if the staff account may not see users.
        """
        found: User | None = getattr(row, "named_user", None)
        return found

    @admin.display(description="User")
    def about_user(self, row: Any) -> str:
        """Return the name of the user in a list. On the page of one row, return a link to the user. For other entities, return their id."""
        user = self.user_of(row)
        if user is None:
            named = str(getattr(row, self.user_column) or "")
            return short_id(named) if named else "-"
        if hasattr(row, "is_listed"):
            return label_of(user)
        page = reverse(f"{self.admin_site.name}:identity_user_change", args=(quote(user.pk),))  # type: ignore[attr-defined]
        return format_html('<a href="{}">{}</a> <code>{}</code>', page, label_of(user), user.user_id)
