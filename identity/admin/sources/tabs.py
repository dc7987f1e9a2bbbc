"""The tabs of a connection: its newest users, the organizations that use it, and its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from foundation.admin.panels import Cell, Panel
from identity.admin.people.labels import person_cell
from identity.models import Connection, OrganizationConnection, User

USERS, ORGANIZATIONS, METADATA = "Users", "Organizations", "Metadata"
_NEWEST = 10
_SHOWN = 50


class ConnectionTabs:
    """The tabs of one site. Accounts that may not see the rows of a table do not see the table."""

    def __init__(self, site: admin.AdminSite) -> None:
        self._site = site

    def users(self, request: HttpRequest, connection: Connection) -> Panel | None:
        if not request.user.has_perm("identity.view_user"):
            return None
        found = User.objects.of(connection.tenant_id).filter(connection=connection).order_by("-created_at", "-pk")[:_NEWEST]
        rows = [
            (
                person_cell(user, self._page("user", user.pk)),
                Cell(f"{user.created_at:%Y-%m-%d %H:%M}"),
                Cell("Blocked" if user.blocked else "Active"),
            )
            for user in found
        ]
        more = f"{self._list('user')}?{urlencode({'connection__id__exact': connection.pk})}"
        columns = ("User", "Created at (UTC)", "State")
        return Panel("Newest users", columns, rows, "No users of this connection yet.", more, "Show all users of this connection")

    def organizations(self, request: HttpRequest, connection: Connection) -> Panel | None:
        if not request.user.has_perm("identity.view_organizationconnection"):
            return None
        may_remove = request.user.has_perm("identity.delete_organizationconnection")
        found = OrganizationConnection.objects.of(connection.tenant_id).filter(connection=connection).select_related("organization")
        rows = [
            (
                Cell(row.organization.display_name or row.organization.name, self._page("organization", row.organization_id)),
                Cell("Yes" if row.assign_membership_on_login else "No"),
                Cell("Change", self._page("organizationconnection", row.pk)),
                Cell("Remove", self._page("organizationconnection", row.pk, "delete")) if may_remove else Cell(""),
            )
            for row in found.order_by("pk")[:_SHOWN]
        ]
        empty = "No organizations. Add the connection to an organization, so that its members can log in with the connection."
        columns = ("Organization", "Users become members at login", "", "")
        return Panel("Organizations that use this connection", columns, rows, empty, **self._add(request, connection))

    def metadata(self, _request: HttpRequest, connection: Connection) -> Panel:
        stored: Mapping[str, object] = connection.metadata if isinstance(connection.metadata, dict) else {}
        rows = [(Cell(name), Cell(str(value))) for name, value in sorted(stored.items())]
        return Panel("Metadata", ("Name", "Value"), rows, "No metadata. To add metadata, open the section “More” of the tab “Settings”.")

    def _add(self, request: HttpRequest, connection: Connection) -> dict[str, Any]:
        if not request.user.has_perm("identity.add_organizationconnection"):
            return {}
        address = reverse(f"{self._site.name}:identity_organizationconnection_add")
        return {"add_url": f"{address}?{urlencode({'connection': connection.pk})}", "add_text": "Add organization"}

    def _list(self, model: str) -> str:
        return reverse(f"{self._site.name}:identity_{model}_changelist")

    def _page(self, model: str, key: int | str, page: str = "change") -> str:
        return reverse(f"{self._site.name}:identity_{model}_{page}", args=(quote(key),))
