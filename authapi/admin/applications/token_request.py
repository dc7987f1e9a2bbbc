"""The test page of an API: programs with which a client requests a token for the API, and a command that calls the API with the token."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from django.contrib import admin
from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from authapi.admin.applications.resource_tabs import MAY_GRANT, grant_address
from authapi.admin.clients import is_plain, setup_of
from authapi.admin.snippets import Snippet, is_loopback, machine_snippets, proof_context
from authapi.models import ApiResource, Client, ClientGrant
from foundation.admin.beside_rows import page_beside
from identity.admin.row_pages import RowPage, RowPagesAdmin

NAME = "test"
_PERMISSION = "authapi.view_clientgrant"
# The maximum number of clients that the page offers.
_MOST_CLIENTS = 100
_CALL = """# Replace the address with an endpoint of the API.
curl --silent --show-error --header "Authorization: Bearer ${TOKEN:?Set TOKEN to the access token}" "%s"
"""
_PROOFS = {"dpop": "a key (each request needs a DPoP proof)", "mtls": "a client certificate"}


class TokenRequestPage:
    """The test page of one admin site."""

    def __init__(self, site: admin.AdminSite, owner: RowPagesAdmin[ApiResource]) -> None:
        self._site = site
        self._owner = owner

    def add(self) -> None:
        """Add the page to the admin class of APIs."""
        self._owner.row_pages.append(RowPage(NAME, "Request a token", require_safe(self.shown), _PERMISSION))

    def shown(self, request: HttpRequest, resource: ApiResource) -> HttpResponse:
        """Show the programs for the client in the query, otherwise for the client with the newest grant.

        Raises 404 if the client in the query cannot request tokens for the API.
        """
        usable = _clients_of(resource)
        clients = list(usable[:_MOST_CLIENTS])
        asked = request.GET.get("client", "")
        chosen = usable.filter(client_id=asked).first() if asked else next(iter(clients), None)
        if asked and chosen is None:
            raise Http404
        if chosen is not None and chosen not in clients:
            clients.append(chosen)
        policies = resource.settings.get("subject_type_authorization") or {}
        context = {
            "original": resource,
            "clients": clients,
            "chosen": chosen,
            "required_proof": _required_proof(resource),
            "is_denied": (policies.get("client") or {}).get("policy") == "deny_all",
            **(_programs(resource, chosen, request.get_host()) if chosen else {}),
            "grant_url": grant_address(self._site, resource) if request.user.has_perm(MAY_GRANT) else "",
            "back_url": self._owner.address_of("change", resource),
        }
        return page_beside(self._owner, request, "admin/api_test.html", f"Request a token for {resource}", **context)


def _clients_of(resource: ApiResource) -> QuerySet[Client]:
    """Return the clients that can request tokens for the API without a user, newest grant first."""
    grants = ClientGrant.objects.of(resource.tenant_id).filter(
        client=OuterRef("pk"), api_resource=resource, subject_type=ClientGrant.SubjectType.CLIENT
    )
    machines = Client.objects.of(resource.tenant_id).filter(revoked_at=None, grant_types__contains=["client_credentials"])
    # A global client needs no grant for the management interface.
    usable = Q(granted_at__isnull=False) | Q(is_global=True) if resource.is_system else Q(granted_at__isnull=False)
    found = machines.annotate(granted_at=Subquery(grants.values("created_at"))).filter(usable)
    return found.order_by(F("granted_at").desc(nulls_last=True), "-pk")


def _required_proof(resource: ApiResource) -> str:
    """Return, in words, the binding that the API requires for the tokens of every client; empty if it has no such requirement."""
    possession = resource.settings.get("proof_of_possession") or {}
    is_required = possession.get("required") and possession.get("required_for", "all_clients") == "all_clients"
    return _PROOFS[possession["mechanism"]] if is_required else ""


def _has_address(audience: str) -> bool:
    """Tell whether the audience is a URL to which a client may send a token (HTTPS, or HTTP to this machine), and not only a name."""
    try:
        return audience.startswith("https://") or is_loopback(urlsplit(audience))
    except ValueError:
        return False


def _programs(resource: ApiResource, client: Client, authority: str) -> dict[str, Any]:
    """Return the template context of the programs: their texts, and how they authenticate the client.

    There are no programs if the identifier of the API has characters (such as a quotation mark) that could end a quoted text in a program.
    """
    setup = setup_of(client, authority)
    audience = f"{setup.issuer}api/v2/" if resource.is_system else resource.identifier
    found: list[Snippet] = []
    if is_plain(audience):
        call = [Snippet("Call the API, with curl", _CALL % audience)] if _has_address(audience) else []
        requests = machine_snippets(replace(setup, audience=audience))
        found = [*requests[:1], *call, *requests[1:]]
    # This page has no programs that log users in.
    return {"snippets": found, "is_plain": is_plain(audience), **proof_context(replace(setup, has_users=False))}
