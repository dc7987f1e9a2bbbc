"""The tabs of a client: its credentials, its connections, its APIs and organizations, and its logins."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from authapi.admin.client_choices import METHODS
from authapi.admin.clients import PASTE, has_secret
from authapi.logs.browsing import Question, browse
from authapi.logs.sign_in_types import in_words
from authapi.models import Client, ClientCredential, ClientGrant, OrganizationClientGrant, SessionClient
from foundation.admin.panels import Cell, Panel
from identity.admin.connection_options import strategy_in_words
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.people.labels import label_of
from identity.models import Connection

APIS = "APIs"
_SHOWN = 50
_NEWEST = 10


class ClientTabs:
    """The tabs of one site. An account sees a table only if it may see the rows of the table."""

    def __init__(self, site: admin.AdminSite) -> None:
        self._site = site

    def add_to(self, page: ObjectActionsAdmin[Client]) -> None:
        page.tabs = {
            # The template shows the snippets; the tab has no table.
            PASTE: [lambda _request, _client: None],
            "Credentials": [self.secret, self.credentials],
            "Connections": [self.connections],
            APIS: [self.apis],
            "Organizations": [self.organizations],
            "Logins": [self.logins, self.sessions],
        }

    def secret(self, request: HttpRequest, client: Client) -> Panel:
        if not has_secret(client):
            text = (
                "No secret: the client is public."
                if client.is_public
                else "No secret: the client authenticates with a key or certificate below."
            )
            return Panel("Secret", ("",), (), text)
        rotate = self._action("client", client.pk, "rotate-secret")
        may = request.user.has_perm("authapi.change_client") and client.revoked_at is None
        rows = [
            (
                Cell("Set. It was shown once and cannot be shown again."),
                Cell(dict(METHODS)[str(client.auth_method)]),
                Cell("Create new secret", rotate) if may else Cell(""),
            )
        ]
        return Panel("Secret", ("Secret", "How the client sends the secret", ""), rows)

    def credentials(self, request: HttpRequest, client: Client) -> Panel | None:
        if not request.user.has_perm("authapi.view_clientcredential"):
            return None
        used = client.proof_ids
        rows = [
            (
                Cell(str(row), self._page("authapi_clientcredential", row.pk)),
                Cell(row.get_type_display()),
                Cell("Active" if row.pk in used else "Inactive"),
                Cell(f"{row.expires_at:%Y-%m-%d %H:%M}" if row.expires_at else "Does not expire"),
            )
            for row in ClientCredential.objects.of(client.tenant_id).filter(client=client).order_by("-created_at", "-pk")[:_SHOWN]
        ]
        empty = "No keys or certificates. A client with a key or certificate needs no secret."
        columns = ("Credential", "Type", "State", "Expires (UTC)")
        return Panel("Keys and certificates", columns, rows, empty, **self._add(request, "clientcredential", client, "Add credential"))

    def connections(self, request: HttpRequest, client: Client) -> Panel | None:
        if not request.user.has_perm("identity.view_connection"):
            return None
        may_change = request.user.has_perm("identity.change_connection")
        page = self._page("authapi_client", client.pk, "connections")
        found = Connection.objects.of(client.tenant_id).filter(enabled_clients__contains=[client.client_id])
        rows = [
            (
                Cell(row.display_name or row.name, self._page("identity_connection", row.pk)),
                Cell(strategy_in_words(row.strategy)),
                Cell("Remove", f"{page}?{urlencode({'connection': row.pk})}") if may_change else Cell(""),
            )
            for row in found.order_by("name", "pk")[:_SHOWN]
        ]
        empty = "No connections. Users cannot log in to this application until you add a connection."
        more: dict[str, Any] = {"add_url": page, "add_text": "Add connection"} if may_change else {}
        return Panel("Connections with which users log in to this application", ("Connection", "Strategy", ""), rows, empty, **more)

    def apis(self, request: HttpRequest, client: Client) -> Panel | None:
        if not request.user.has_perm("authapi.view_clientgrant"):
            return None
        may_remove = request.user.has_perm("authapi.delete_clientgrant")
        own = f"?{urlencode({'client': client.pk})}"
        found = ClientGrant.objects.of(client.tenant_id).filter(client=client).select_related("api_resource")
        rows = [
            (
                Cell(str(row.api_resource), self._page("authapi_clientgrant", row.pk)),
                Cell(row.api_resource.identifier),
                Cell("The application itself" if row.subject_type == "client" else "Its users"),
                Cell(scopes_of(row)),
                Cell("Remove", self._page("authapi_clientgrant", row.pk, "delete") + own) if may_remove else Cell(""),
            )
            for row in found.order_by("created_at", "pk")[:_SHOWN]
        ]
        empty = (
            "This client is global: it may use the whole management interface without a grant." if client.is_global else "No APIs granted."
        )
        columns = ("API", "Identifier (audience)", "Tokens for", "Scopes", "")
        return Panel("Granted APIs", columns, rows, empty, **self._add(request, "clientgrant", client, "Grant an API"))

    def organizations(self, request: HttpRequest, client: Client) -> Panel | None:
        if not request.user.has_perm("authapi.view_organizationclientgrant"):
            return None
        found = OrganizationClientGrant.objects.of(client.tenant_id).filter(client_grant__client=client)
        rows = [
            (
                Cell(row.organization.display_name or row.organization.name, self._page("identity_organization", row.organization_id)),
                Cell(str(row.client_grant.api_resource), self._page("authapi_clientgrant", row.client_grant_id)),
                Cell(f"{row.created_at:%Y-%m-%d %H:%M}"),
            )
            for row in found.select_related("organization", "client_grant__api_resource").order_by("-pk")[:_SHOWN]
        ]
        empty = "No grants in organizations. To add a grant of the client to an organization, use the management interface."
        return Panel("Organizations in which a grant of this client is valid", ("Organization", "API", "Since (UTC)"), rows, empty)

    def logins(self, request: HttpRequest, client: Client) -> Panel | None:
        if not request.user.has_perm("authapi.view_signin"):
            return None
        rows = [
            (
                Cell(f"{row.created_at:%Y-%m-%d %H:%M}", self._page("authapi_signin", row.pk)),
                Cell(in_words(row.type)),
                Cell(row.description),
                Cell(row.ip or ""),
            )
            for row in browse(Question(tenant_id=client.tenant_id, client_id=client.client_id)).rows[:_NEWEST]
        ]
        more = f"{reverse(f'{self._site.name}:authapi_signin_changelist')}?{urlencode({'client': client.client_id})}"
        columns = ("When (UTC)", "What", "Reason", "IP address")
        return Panel("Newest entries of the sign-in log", columns, rows, "No entries yet.", more, "Show all in the sign-in log")

    def sessions(self, request: HttpRequest, client: Client) -> Panel | None:
        if not (request.user.has_perm("authapi.view_session") and request.user.has_perm("identity.view_user")):
            return None
        found = SessionClient.objects.of(client.tenant_id).filter(client=client).select_related("session__user").order_by("-pk")
        rows = [
            (
                Cell(row.session_id, self._page("authapi_session", row.session_id)),
                Cell(label_of(row.session.user), self._page("identity_user", row.session.user_id)),
                Cell(f"{row.created_at:%Y-%m-%d %H:%M}"),
            )
            for row in found[:_NEWEST]
        ]
        return Panel("Newest sessions", ("Session", "User", "Since (UTC)"), rows, "No active sessions with this application.")

    def _add(self, request: HttpRequest, model: str, client: Client, text: str) -> dict[str, Any]:
        """Return the link from a panel to the form for a new row of this client. Empty for an account that may not add such a row."""
        if client.revoked_at is not None or not request.user.has_perm(f"authapi.add_{model}"):
            return {}
        address = reverse(f"{self._site.name}:authapi_{model}_add")
        return {"add_url": f"{address}?{urlencode({'client': client.pk})}", "add_text": text}

    def _page(self, model: str, key: int | str, page: str = "change") -> str:
        return reverse(f"{self._site.name}:{model}_{page}", args=(quote(key),))

    def _action(self, model: str, key: int | str, action: str) -> str:
        return reverse(f"{self._site.name}:authapi_{model}_action", args=(quote(key), action))


def scopes_of(grant: ClientGrant) -> str:
    """Return the scopes of a grant as one text."""
    return "All" if grant.allows_all_scopes else ", ".join(grant.scopes) or "None"
