"""Admin pages of connections."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from identity.admin.deletions import DeletedInPartsAdmin
from identity.admin.json_fields import ShapedJSONField
from identity.admin.service_form import ServiceForm
from identity.models import Connection
from identity.models.connections import SECRET_OPTIONS, known_strategies
from identity.services import connections


def strategy_choices() -> list[tuple[str, str]]:
    return [(name, name) for name in known_strategies()]


class ConnectionForm(ServiceForm):
    strategy = forms.ChoiceField(choices=strategy_choices, help_text="Where the users come from. Never changes.")
    options = ShapedJSONField(
        label="Options",
        help_text=f"A JSON object. {', '.join(SECRET_OPTIONS)} are encrypted and never shown again; "
        "they stay as they are until they are entered again, and null removes one.",
    )
    realms = ShapedJSONField(label="Realms", shape=list, help_text="A JSON list of names. Empty: the name of the connection.")
    enabled_clients = ShapedJSONField(
        label="Enabled clients", shape=list, help_text="A JSON list of client ids that may use this connection."
    )
    metadata = ShapedJSONField(label="Metadata", help_text="A JSON object for your own notes.")
    authentication = ShapedJSONField(label="Authentication", is_nullable=True)
    connected_accounts = ShapedJSONField(label="Connected accounts", is_nullable=True)

    class Meta:
        model = Connection
        fields = ()  # The admin class names them.


def with_kept_secrets(connection: Connection, options: dict[str, Any]) -> dict[str, Any]:
    """Return new options together with the secrets that were not entered again; null drops one."""
    kept = {name: connection.secret_option(name) for name in connection.sealed_options if name not in options}
    return {name: value for name, value in {**kept, **options}.items() if not (name in SECRET_OPTIONS and value is None)}


def _names_a_secret(options: str) -> bool:
    try:
        sent = json.loads(options)
    except ValueError:
        # The form refuses it and nothing is saved.
        return False
    return isinstance(sent, dict) and any(name in sent for name in SECRET_OPTIONS)


class ConnectionAdmin(DeletedInPartsAdmin[Connection]):
    form = ConnectionForm
    grows = False
    list_display = ("name", "strategy", "display_name", "id", "created_at", "tenant")
    list_filter = ("strategy", "created_at")
    list_select_related = ("tenant",)
    sortable_by = ("name", "created_at")
    search_fields = ("name", "display_name", "id__exact")
    empty_text = "No connections yet. Add a database connection first: users belong to one."
    deletion_effect = "All its users are deleted first, each with an event of its own; this can take a while."

    def get_fieldsets(self, request: HttpRequest, obj: Connection | None = None) -> Any:
        more = ["realms", "enabled_clients", "is_domain_connection", "show_as_button", "authentication", "connected_accounts", "metadata"]
        first = ["name", "strategy", "display_name"]
        if obj is None:
            return [(None, {"fields": first}), ("Options", {"fields": ["options"]}), ("More", {"fields": more, "classes": ["collapse"]})]
        own = ["id", *first, *([] if self.is_bound(request) else ["tenant"])]
        return [(None, {"fields": own}), ("Options", {"fields": ["options", "secrets"]}),
                ("More", {"fields": [*more, "created_at", "updated_at"], "classes": ["collapse"]})]  # fmt: skip

    def wants_proof(self, request: HttpRequest, object_id: str | None) -> bool:
        """Ask where a secret option is entered or taken away."""
        is_sent = request.method == "POST" and _names_a_secret(request.POST.get("options", ""))
        return super().wants_proof(request, object_id) or (is_sent and self.has_change_permission(request))

    def get_readonly_fields(self, request: HttpRequest, obj: Connection | None = None) -> Any:
        own = ("id", "secrets", "created_at", "updated_at")
        return own if obj is None else (*own, "name", "strategy", "tenant")

    @admin.display(description="Secret options")
    def secrets(self, row: Connection) -> str:
        return f"Set: {', '.join(sorted(row.sealed_options))}." if row.sealed_options else "None is set."

    def create(self, request: HttpRequest, form: Any) -> Connection:
        values = {name: value for name, value in form.cleaned_data.items() if value not in (None, "", {}, [])}
        return connections.create_connection(tenant_id=self.tenant_for_new(request), **values)

    def change(self, request: HttpRequest, row: Connection, form: Any) -> None:
        changes = form.changes()
        if "options" in changes:
            changes["options"] = with_kept_secrets(row, changes["options"])
        if changes:
            connections.update_connection(tenant_id=row.tenant_id, connection_id=row.pk, changes=changes)
