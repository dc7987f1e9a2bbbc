"""Shared parts of the tables on the pages of users, organizations, groups and roles: links, permissions and empty cells."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from foundation.admin.panels import Cell, Panel
from foundation.admin.returning import returning
from identity.admin.people.labels import person_cell
from identity.models import User

# A table shows at most this many rows, and links to the list of all rows.
SHOWN = 50


class Tables:
    """The tables of one site. Staff accounts that may not see the rows of a table do not see the table."""

    def __init__(self, site: admin.AdminSite) -> None:
        self._site = site

    def may(self, request: HttpRequest, verb: str, model: type[Model]) -> bool:
        """Tell whether the staff account may view, add, change or delete rows of the model."""
        return request.user.has_perm(f"{model._meta.app_label}.{verb}_{model._meta.model_name}")

    def page_of(self, row: Model, page: str = "change") -> str:
        """Return the URL of a page of the row."""
        return reverse(f"{self._site.name}:{row._meta.app_label}_{row._meta.model_name}_{page}", args=(quote(row.pk),))

    def list_of(self, model: type[Model], **query: str) -> str:
        return f"{reverse(f'{self._site.name}:{model._meta.app_label}_{model._meta.model_name}_changelist')}?{urlencode(query)}"

    def add_of(self, model: type[Model], **query: str) -> str:
        return f"{reverse(f'{self._site.name}:{model._meta.app_label}_{model._meta.model_name}_add')}?{urlencode(query)}"

    def person(self, request: HttpRequest, user: User) -> Cell:
        """Return the cell of a user, with a link for accounts that may see users."""
        return person_cell(user, self.page_of(user) if self.may(request, "view", User) else "")

    def linked(self, request: HttpRequest, row: Model, text: str = "", note: str = "") -> Cell:
        """Return the cell of a row, with a link for accounts that may see such rows."""
        return Cell(text or str(row), self.page_of(row) if self.may(request, "view", type(row)) else "", note=note)

    def removal(self, request: HttpRequest, row: Model, text: str = "Remove") -> Cell:
        """Return a link to the page that removes the row after a confirmation and then redirects back.

        The result is empty if the account lacks the permission.
        """
        return Cell(text, returning(request, self.page_of(row, "delete"))) if self.may(request, "delete", type(row)) else Cell("")

    def act(self, request: HttpRequest, row: Model, action: str, text: str) -> Cell:
        """Return a link to the page that runs an action after a confirmation and then redirects back.

        The result is empty if the account lacks the permission.
        """
        if not self.may(request, "change", type(row)):
            return Cell("")
        place = reverse(f"{self._site.name}:{row._meta.app_label}_{row._meta.model_name}_action", args=(quote(row.pk), action))
        return Cell(text, returning(request, place))


def moment(value: datetime) -> str:
    """Return a time in UTC, as the pages show it."""
    return f"{value:%Y-%m-%d %H:%M}"


def cut(title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], **options: Any) -> Panel:
    """Return a table with at most `SHOWN` rows. If `rows` has more rows, the table links to the complete list."""
    if len(rows) <= SHOWN:
        options = {**options, "more_url": ""}
    return Panel(title, columns, rows[:SHOWN], **options)
