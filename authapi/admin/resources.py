"""Admin pages of APIs and client grants."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from authapi.models import ApiResource, ClientGrant
from authapi.services import api_resources, client_grants
from identity.admin.json_fields import ShapedJSONField
from identity.admin.service_admin import ServiceAdmin
from identity.admin.service_form import ServiceForm


class ApiResourceForm(ServiceForm):
    scopes = ShapedJSONField(shape=list, help_text='A JSON list such as [{"value": "read:orders", "description": "Read orders"}].')

    class Meta:
        model = ApiResource
        fields = "__all__"


class ApiResourceAdmin(ServiceAdmin[ApiResource]):
    form = ApiResourceForm
    list_display = ("name", "identifier", "token_dialect", "token_lifetime", "is_system", "tenant")
    list_select_related = ("tenant",)
    sortable_by = ("name",)
    search_fields = ("name", "=identifier", "=id")
    empty_text = "No APIs yet. The management interface appears with the first client grant or token."

    def get_fieldsets(self, request: HttpRequest, obj: ApiResource | None = None) -> Any:
        first = ["identifier", "name", "scopes", "token_lifetime", "token_dialect"]
        if obj is None:
            return [(None, {"fields": first})]
        return [(None, {"fields": ["id", "tenant", *first, "is_system", "created_at", "updated_at"]})]

    def has_change_permission(self, request: HttpRequest, obj: ApiResource | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiResource | None = None) -> bool:
        return False

    def create(self, request: HttpRequest, form: Any) -> ApiResource:
        values = {name: form.cleaned_data[name] for name in ("identifier", "name", "scopes", "token_lifetime", "token_dialect")}
        return api_resources.create_api_resource(tenant_id=self.tenant_for_new(request), **values)


class ClientGrantForm(ServiceForm):
    scopes = ShapedJSONField(shape=list, help_text='A JSON list such as ["read:events"]; scopes of the API only.')

    class Meta:
        model = ClientGrant
        fields = "__all__"


class ClientGrantAdmin(ServiceAdmin[ClientGrant]):
    form = ClientGrantForm
    list_display = ("id", "client", "api_resource", "updated_at", "tenant")
    list_select_related = ("client", "api_resource", "tenant")
    sortable_by = ("updated_at",)
    search_fields = ("=id", "=client__client_id", "client__name")
    empty_text = "No client grants yet. A client that is not global needs one for each API."
    deletion_effect = "The client can no longer ask for tokens to this API; those it has end."

    def get_fieldsets(self, request: HttpRequest, obj: ClientGrant | None = None) -> Any:
        first = ["client", "api_resource", "scopes"]
        return [(None, {"fields": first if obj is None else ["id", "tenant", *first, "created_at", "updated_at"]})]

    def get_readonly_fields(self, request: HttpRequest, obj: ClientGrant | None = None) -> Any:
        return () if obj is None else ("id", "tenant", "client", "api_resource", "created_at", "updated_at")

    def create(self, request: HttpRequest, form: Any) -> ClientGrant:
        values = form.cleaned_data
        return client_grants.create_client_grant(
            tenant_id=self.tenant_for_new(request),
            client_id=values["client"].client_id,
            api_resource=values["api_resource"],
            scopes=values["scopes"],
        )

    def change(self, request: HttpRequest, row: ClientGrant, form: Any) -> None:
        client_grants.update_client_grant(tenant_id=row.tenant_id, grant_id=row.pk, scopes=form.cleaned_data["scopes"])

    def remove(self, request: HttpRequest, row: ClientGrant) -> None:
        client_grants.delete_client_grant(tenant_id=row.tenant_id, grant_id=row.pk)
