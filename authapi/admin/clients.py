"""Admin pages of clients. A secret is shown once, in the answer to what made it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest

from authapi.engine import SERVED_GRANTS
from authapi.models import Client
from authapi.services import clients
from identity.admin.badges import badge
from identity.admin.json_fields import ShapedJSONField
from identity.admin.object_actions import ObjectAction
from identity.admin.service_admin import ServiceAdmin
from identity.admin.service_form import ServiceForm


class ClientForm(ServiceForm):
    name = forms.CharField(max_length=255)
    grant_types = ShapedJSONField(
        shape=list, initial=list(SERVED_GRANTS), help_text=f"A JSON list. Served now: {', '.join(SERVED_GRANTS)}."
    )
    metadata = ShapedJSONField(help_text="A JSON object for your own notes.")

    class Meta:
        model = Client
        fields = "__all__"


def _rotate(_request: HttpRequest, row: Client, _values: dict[str, Any]) -> str:
    _, secret = clients.rotate_client_secret(tenant_id=row.tenant_id, client_id=row.client_id)
    return _shown_once(row, secret)


def _revoke(_request: HttpRequest, row: Client, _values: dict[str, Any]) -> str:
    clients.revoke_client(tenant_id=row.tenant_id, client_id=row.client_id)
    return f"{row} is shut out."


def _shown_once(row: Client, secret: str) -> str:
    return f"The secret of {row}, shown only now: {secret}"


class ClientAdmin(ServiceAdmin[Client]):
    form = ClientForm
    list_display = ("name", "client_id", "state", "is_global", "token_endpoint_auth_method", "created", "tenant")
    list_filter = ("is_global", "token_endpoint_auth_method")
    list_select_related = ("tenant",)
    sortable_by = ("name", "created")
    search_fields = ("name", "=client_id")
    empty_text = "No clients yet. Add one, then give it a client grant for the management interface."
    deletion_effect = "Its grants go with it; its tokens end and its streams are closed within two seconds."
    object_actions = (
        ObjectAction(
            "rotate-secret",
            "New secret",
            lambda _request, row: f"{row} gets a new secret. The old one, and every token and stream made with it, ends at once.",
            _rotate,
            is_offered=lambda row: not row.is_public and row.revoked_at is None,
            is_dangerous=True,
        ),
        ObjectAction(
            "revoke",
            "Revoke",
            lambda _request, row: f"{row} is shut out for good: no new tokens, and those it has end. The row stays.",
            _revoke,
            is_offered=lambda row: row.revoked_at is None,
            is_dangerous=True,
        ),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Client | None = None) -> Any:
        first = ["name", "is_global", "token_endpoint_auth_method", "grant_types", "metadata"]
        if obj is None:
            return [(None, {"fields": first})]
        return [
            (None, {"fields": ["client_id", "tenant", "state", *first]}),
            ("Kept by the service", {"fields": ["auth_version", "revoked_at", "created", "updated"]}),
        ]

    def has_change_permission(self, request: HttpRequest, obj: Client | None = None) -> bool:
        # What a client may do is decided when it is made and by its grants; its secret and standing have buttons.
        return False

    @admin.display(description="State")
    def state(self, row: Client) -> str:
        return badge("Active", "good") if row.revoked_at is None else badge("Revoked", "bad")

    def create(self, request: HttpRequest, form: Any) -> Client:
        values = {name: form.cleaned_data[name] for name in ("name", "is_global", "token_endpoint_auth_method", "grant_types", "metadata")}
        client, secret = clients.create_client(tenant_id=self.tenant_for_new(request), **values)
        if secret:
            self.message_user(request, _shown_once(client, secret), messages.WARNING)
        return client

    def remove(self, request: HttpRequest, row: Client) -> None:
        clients.delete_client(tenant_id=row.tenant_id, client_id=row.client_id)
