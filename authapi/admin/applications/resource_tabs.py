"""The tabs of an API: its permissions with the number of roles that have them, and the clients with a grant for the API."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import Count
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from authapi.admin.applications.client_tabs import scopes_of
from authapi.admin.applications.resource_acts import ADD_PERMISSION, PERMISSIONS
from authapi.models import ApiResource, ClientGrant, Permission
from foundation.admin.panels import Cell, Panel
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.object_links import ObjectLink

GRANT = "grant"
MAY_GRANT = "authapi.add_clientgrant"
_SHOWN = 100


def grant_address(site: admin.AdminSite, resource: ApiResource) -> str:
    """Return the URL of the form that grants the API to a client."""
    return f"{reverse(f'{site.name}:authapi_clientgrant_add')}?{urlencode({'api_resource': resource.pk})}"


class ResourceTabs:
    """The tabs of one site. An account sees a table only if it may see the rows of the table."""

    def __init__(self, site: admin.AdminSite) -> None:
        self._site = site

    def add_to(self, page: ObjectActionsAdmin[ApiResource]) -> None:
        page.tabs = {PERMISSIONS: [self.permissions], "Clients": [self.clients]}
        page.object_links.append(ObjectLink(GRANT, "Grant to a client", partial(grant_address, self._site), MAY_GRANT))

    def permissions(self, request: HttpRequest, resource: ApiResource) -> Panel | None:
        if not request.user.has_perm("authapi.view_permission"):
            return None
        counted = Permission.objects.of(resource.tenant_id).filter(api_resource=resource)
        roles = dict(counted.annotate(number=Count("role_permissions")).values_list("value", "number"))
        rows = [
            (
                Cell(str(scope["value"])),
                Cell(str(scope.get("description") or "")),
                Cell(str(roles.get(scope["value"], 0))),
            )
            for scope in resource.scopes[-_SHOWN:]
        ]
        columns = ("Permission", "Description", "Roles with the permission")
        number = len(resource.scopes)
        # The table shows the end of the list, because new permissions are added at the end. The settings tab shows all permissions.
        more_url = self._page("apiresource", resource.pk) if number > _SHOWN else ""
        more_text = f"The newest {_SHOWN} of {number} permissions are shown. Show all"
        return Panel("Permissions", columns, rows, "No permissions yet.", more_url, more_text, adds=ADD_PERMISSION)

    def clients(self, request: HttpRequest, resource: ApiResource) -> Panel | None:
        if not request.user.has_perm("authapi.view_clientgrant"):
            return None
        may_remove = request.user.has_perm("authapi.delete_clientgrant")
        found = (
            ClientGrant.objects.of(resource.tenant_id).filter(api_resource=resource).select_related("client").order_by("-created_at", "-pk")
        )
        rows = [
            (
                Cell(str(row.client), self._page("client", row.client_id)),
                Cell("The application itself" if row.subject_type == "client" else "Its users"),
                Cell(scopes_of(row)),
                Cell("Change", self._page("clientgrant", row.pk)),
                Cell("Remove", self._page("clientgrant", row.pk, "delete") + f"?{urlencode({'api_resource': resource.pk})}")
                if may_remove
                else Cell(""),
            )
            for row in found[:_SHOWN]
        ]
        empty = "No grants. A grant lets a client request tokens for this API."
        columns = ("Client", "Tokens for", "Scopes", "", "")
        return Panel("Clients with a grant for this API", columns, rows, empty, **self._add(request, resource))

    def _add(self, request: HttpRequest, resource: ApiResource) -> dict[str, Any]:
        if not request.user.has_perm(MAY_GRANT):
            return {}
        return {"add_url": grant_address(self._site, resource), "add_text": "Grant to a client"}

    def _page(self, model: str, key: int | str, page: str = "change") -> str:
        return reverse(f"{self._site.name}:authapi_{model}_{page}", args=(quote(key),))
