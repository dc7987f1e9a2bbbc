"""Pages that enable or disable a connection for a client. Staff open them from the page of the connection or of the client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import urlencode
from django.utils.text import slugify

from authapi.models import Client
from foundation.acting import said
from foundation.admin.beside_rows import page_beside
from foundation.admin.panels import Cell, Panel
from foundation.database.transactions import unit_of_work
from identity.admin.refusals import add_to_form, refusals
from identity.admin.row_pages import RowPage, RowPagesAdmin
from identity.audit.entries import image_of, is_noted, record
from identity.models import Connection
from identity.services.connections import change_enabled_clients

APPLICATIONS, CONNECTIONS = "Applications", "Connections"
_MAY_CHANGE = "identity.change_connection"
_OFFERED = 200


class ChoiceForm(forms.Form):
    """A form field that selects one row by its identifier or name. The page offers the first rows as suggestions."""

    chosen = forms.CharField(max_length=255, widget=forms.TextInput(attrs={"list": "offered", "autocomplete": "off", "size": 40}))

    def __init__(self, rows: QuerySet[Any], identifier: str, label: str, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._rows, self._identifier, self._label = rows, identifier, label
        self.fields["chosen"].label = label.capitalize()
        self.fields["chosen"].help_text = f"The name or the id of the {label}."

    def clean_chosen(self) -> Any:
        value = self.cleaned_data["chosen"].strip()
        if "\x00" in value:
            raise forms.ValidationError("Enter a name or an id without the character NUL.")
        found = self._rows.filter(**{self._identifier: value}).first()
        if found is not None:
            return found
        named = list(self._rows.filter(name=value)[:2])
        if len(named) == 1:
            return named[0]
        if named:
            raise forms.ValidationError(f"More than one {self._label} has this name. Enter the id of the {self._label}.")
        raise forms.ValidationError(f"There is no {self._label} with this name or id.")


class EnabledClients:
    """The pages of one admin site, and the tab of a connection with links to these pages."""

    def __init__(self, site: admin.AdminSite, connections: RowPagesAdmin[Connection], clients: RowPagesAdmin[Client]) -> None:
        self._site = site
        self._connections = connections
        self._clients = clients

    def add(self) -> None:
        """Add the pages and the tab."""
        self._connections.row_pages.append(RowPage("applications", "Applications", self.of_connection, _MAY_CHANGE, in_menu=False))
        self._clients.row_pages.append(RowPage("connections", "Connections", self.of_client, _MAY_CHANGE, in_menu=False))
        first, *others = self._connections.tabs.items()
        self._connections.tabs = dict([first, (APPLICATIONS, [self.panel]), *others])

    def panel(self, request: HttpRequest, connection: Connection) -> Panel | None:
        """Return the panel that lists the clients of a connection."""
        if not request.user.has_perm("authapi.view_client"):
            return None
        may_change = request.user.has_perm(_MAY_CHANGE)
        page = self._connections.address_of("applications", connection)
        found = Client.objects.of(connection.tenant_id).filter(client_id__in=connection.enabled_clients, is_account_page=False)
        rows = [
            (
                Cell(str(row), self._clients.address_of("change", row)),
                Cell(row.client_id),
                Cell("Remove", f"{page}?{urlencode({'client': row.client_id})}") if may_change else Cell(""),
            )
            for row in found.order_by("name", "pk")[:_OFFERED]
        ]
        empty = "No applications. Users of this connection cannot log in until you add one."
        more: dict[str, Any] = {"add_url": page, "add_text": "Add application"} if may_change else {}
        return Panel("Applications to which users of this connection can log in", ("Application", "Client id", ""), rows, empty, **more)

    def of_connection(self, request: HttpRequest, connection: Connection) -> HttpResponse:
        """Add a client to a connection, or remove the client whose id is in the URL."""
        back = f"{self._connections.address_of('change', connection)}?tab={slugify(APPLICATIONS)}"
        clients = Client.objects.of(connection.tenant_id).filter(is_account_page=False, revoked_at=None)
        if "client" in request.GET:
            if request.GET["client"] not in connection.enabled_clients:
                raise Http404
            client = Client.objects.of(connection.tenant_id).filter(client_id=request.GET["client"]).first()
            name = str(client or request.GET["client"])
            return self._removed(request, self._connections, connection, connection, request.GET["client"], f"to {name}", back)
        offered = clients.exclude(client_id__in=connection.enabled_clients).order_by("name", "pk")
        form = ChoiceForm(offered, "client_id", "application", request.POST or None)
        return self._added(request, self._connections, connection, form, back)

    def of_client(self, request: HttpRequest, client: Client) -> HttpResponse:
        """Add a connection to a client, or remove the connection whose id is in the URL."""
        if client.revoked_at is not None:
            raise PermissionDenied
        back = f"{self._clients.address_of('change', client)}?tab={slugify(CONNECTIONS)}"
        connections = Connection.objects.of(client.tenant_id)
        if "connection" in request.GET:
            chosen = connections.filter(pk=request.GET["connection"], enabled_clients__contains=[client.client_id]).first()
            if chosen is None:
                raise Http404
            return self._removed(request, self._clients, client, chosen, client.client_id, f"to {client}", back)
        offered = connections.exclude(enabled_clients__contains=[client.client_id]).order_by("name", "pk")
        form = ChoiceForm(offered, "pk", "connection", request.POST or None)
        return self._added(request, self._clients, client, form, back)

    def _added(self, request: HttpRequest, page: RowPagesAdmin[Any], row: Any, form: ChoiceForm, back: str) -> HttpResponse:
        if request.method == "POST" and form.is_valid():
            chosen = form.cleaned_data["chosen"]
            connection, client = (chosen, row) if isinstance(chosen, Connection) else (row, chosen)
            try:
                _change(connection, added=[client.client_id])
            except refusals() as refusal:
                add_to_form(form, refusal)
            else:
                messages.success(request, f"Users of {connection} can log in to {client}.")
                return HttpResponseRedirect(back)
        offered = [(getattr(each, form._identifier), str(each)) for each in form._rows[:_OFFERED]]
        shown = {"form": form, "offered": offered, "original": row, "back_url": back, "act": f"Add {form._label}"}
        return page_beside(page, request, "admin/link_row.html", f"Add {form._label}", **shown)

    def _removed(
        self, request: HttpRequest, page: RowPagesAdmin[Any], row: Any, connection: Connection, client_id: str, where: str, back: str
    ) -> HttpResponse:
        form = forms.Form(request.POST or None)
        if request.method == "POST":
            try:
                _change(connection, removed=[client_id])
            except refusals() as refusal:
                add_to_form(form, refusal)
            else:
                messages.success(request, f"Users of {connection} can no longer log in {where}.")
                return HttpResponseRedirect(back)
        kind = "application" if row is connection else "connection"
        effect = f"Users of {connection} can no longer log in {where}. Existing sessions do not end."
        shown = {"form": form, "effect": effect, "original": row, "back_url": back, "act": "Remove", "is_dangerous": True}
        return page_beside(page, request, "admin/link_row.html", f"Remove {kind}?", **shown)


@unit_of_work
def _change(connection: Connection, *, added: Sequence[str] = (), removed: Sequence[str] = ()) -> None:
    label = "Added application" if added else "Removed application"
    before = image_of(connection)
    with said(label):
        change_enabled_clients(tenant_id=connection.tenant_id, connection_id=connection.pk, added=added, removed=removed)
        if not is_noted(connection):
            record(label, about=connection, before=before, after=image_of(connection))
