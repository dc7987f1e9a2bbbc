"""Admin pages of connections."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.http import HttpRequest

from foundation.admin.json_fields import ShapedJSONField, pretty
from identity.admin.deletions import DeletedInPartsAdmin
from identity.admin.row_pages import RowPagesAdmin
from identity.admin.service_form import ServiceForm
from identity.models import Connection
from identity.models.connections import known_strategies
from identity.options.schemas.nodes import is_kept, split
from identity.services import connections


def strategy_choices() -> list[tuple[str, str]]:
    return [(name, name) for name in known_strategies()]


class ConnectionForm(ServiceForm):
    strategy = forms.ChoiceField(choices=strategy_choices, help_text="Where the users come from. Never changes.")
    options = ShapedJSONField(
        label="Options",
        help_text="A JSON object. Secrets and members that the strategy does not know are encrypted and never shown again. "
        "They stay as they are until they are entered again, and null removes one.",
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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["options"] = self.instance.shown_options

    def _post_clean(self) -> None:
        options = self.cleaned_data.get("options")
        super()._post_clean()
        if self.errors and options:
            self._forget_secrets(options)

    def _forget_secrets(self, options: dict[str, Any]) -> None:
        """Take the secrets out of what a refused form shows again."""
        typed = Connection(strategy=self.instance.strategy or self.cleaned_data.get("strategy", ""))
        parts = split(typed.option_schema, options)
        if parts.secrets:
            self.data = {**dict(self.data.items()), self.add_prefix("options"): pretty(parts.shown)}
            self.add_error(None, f"Enter these again: {', '.join(sorted(parts.secrets))}.")


def _touches_a_secret(row: Connection, options: str) -> bool:
    """Tell whether options of a form set a sealed member of the connection or take one away."""
    try:
        sent = json.loads(options or "{}")
    except (ValueError, RecursionError):
        # The form refuses it and nothing is saved.
        return False
    if not isinstance(sent, dict):
        return False
    named = split(row.option_schema, sent).secrets
    return bool(named) or _holds_null(sent) or not all(is_kept(path, shown=row.shown_options, sent=sent) for path in row.sealed_options)


def _holds_null(value: object) -> bool:
    return value is None or (isinstance(value, dict) and any(_holds_null(inner) for inner in value.values()))


class ConnectionAdmin(RowPagesAdmin[Connection], DeletedInPartsAdmin[Connection]):
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
        if super().wants_proof(request, object_id):
            return True
        if request.method != "POST" or not self.has_change_permission(request):
            return False
        row = None if object_id is None else self.get_object(request, unquote(object_id))
        return _touches_a_secret(row or Connection(strategy=request.POST.get("strategy", "")), request.POST.get("options", ""))

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
        if changes:
            connections.update_connection(tenant_id=row.tenant_id, connection_id=row.pk, changes=changes)
