"""The test page of an API: programs that request a token for the API as one of its clients, and a call with the token."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from authapi.admin.applications.resource_tabs import MAY_GRANT, grant_address
from authapi.admin.clients import has_secret, is_plain, setup_of
from authapi.admin.snippets import Snippet, machine_snippets
from authapi.models import ApiResource, Client, ClientGrant
from foundation.admin.beside_rows import page_beside
from identity.admin.row_pages import RowPage, RowPagesAdmin

NAME = "test"
_PERMISSION = "authapi.view_clientgrant"
# The form offers at most this many clients.
_MOST_CLIENTS = 100
_CALL = 'curl --silent --show-error --header "Authorization: Bearer ${TOKEN:?Set TOKEN to the access token}" "%s"\n'


class TokenRequestPage:
    """The test page of one admin site."""

    def __init__(self, site: admin.AdminSite, owner: RowPagesAdmin[ApiResource]) -> None:
        self._site = site
        self._owner = owner

    def add(self) -> None:
        """Add the page to the admin class of APIs."""
        self._owner.row_pages.append(RowPage(NAME, "Test", require_safe(self.shown), _PERMISSION))

    def shown(self, request: HttpRequest, resource: ApiResource) -> HttpResponse:
        """Show the programs for the client in the query, otherwise for the newest client. Raises 404 if the client may get no tokens."""
        clients = list(_clients_of(resource)[:_MOST_CLIENTS])
        asked = request.GET.get("client", "")
        chosen = next((client for client in clients if client.client_id == asked), None) if asked else next(iter(clients), None)
        if asked and chosen is None:
            raise Http404
        policies = resource.settings.get("subject_type_authorization") or {}
        context = {
            "original": resource,
            "clients": clients,
            "chosen": chosen,
            "has_secret": chosen is not None and has_secret(chosen),
            "is_denied": (policies.get("client") or {}).get("policy") == "deny_all",
            "snippets": _snippets(resource, chosen, request.get_host()) if chosen else [],
            "grant_url": grant_address(self._site, resource) if request.user.has_perm(MAY_GRANT) else "",
            "back_url": self._owner.address_of("change", resource),
        }
        return page_beside(self._owner, request, "admin/api_test.html", "Test", **context)


def _clients_of(resource: ApiResource) -> QuerySet[Client]:
    """Return the clients that can request tokens for the API without a user, newest grant first."""
    granted = Client.objects.of(resource.tenant_id).filter(
        client_grants__api_resource=resource,
        client_grants__subject_type=ClientGrant.SubjectType.CLIENT,
        revoked_at=None,
        grant_types__contains=["client_credentials"],
    )
    return granted.order_by("-client_grants__created_at", "-pk")


def _snippets(resource: ApiResource, client: Client, authority: str) -> list[Snippet]:
    """Return the programs; none for an identifier with characters that could end a quoted text."""
    setup = setup_of(client, authority)
    audience = f"{setup.issuer}api/v2/" if resource.is_system else resource.identifier
    if not is_plain(audience):
        return []
    python, node, shell = machine_snippets(replace(setup, audience=audience))
    call = [Snippet("Call the API, with curl", _CALL % audience)] if audience.startswith(("https://", "http://")) else []
    return [shell, *call, python, node]
