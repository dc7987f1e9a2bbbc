"""Actions on the page of an API: add a permission, and replace the secret that signs its tokens."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse

from authapi.models import ApiResource, ClientGrant
from authapi.services.resource_changes import add_scope, rotate_signing_secret
from foundation.admin.beside_rows import page_beside
from identity.admin.object_actions import ObjectAction
from identity.admin.row_forms import RowForm

PERMISSIONS = "Permissions"
ADD_PERMISSION = "add-permission"


class NewPermissionForm(RowForm):
    """One scope. The maximum lengths are the same as in the management interface."""

    value = forms.RegexField(
        r"\A\S+\Z",
        label="Permission",
        max_length=280,
        help_text="A scope, such as read:orders.",
        error_messages={"invalid": "Enter a scope without spaces."},
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "placeholder": "read:orders"}),
    )
    description = forms.CharField(required=False, max_length=500, help_text="Shown to users on the consent page.")


def _add_permission(_request: HttpRequest, row: ApiResource, values: dict[str, Any]) -> str:
    add_scope(tenant_id=row.tenant_id, resource_id=row.pk, **values)
    return f"{row} has the new permission {values['value']}."


def _explain_rotation(_request: HttpRequest, row: ApiResource) -> str:
    usable = ClientGrant.objects.of(row.tenant_id).filter(api_resource=row, client__revoked_at=None)
    number = usable.values("client").distinct().count()
    clients = "No client has a grant" if not number else "1 client has a grant" if number == 1 else f"{number} clients have a grant"
    policy = (row.settings.get("subject_type_authorization") or {}).get("user", {}).get("policy")
    # With these policies, a client needs no client grant to get tokens of users for the API.
    users = " Every application can request tokens for users." if policy in (None, "allow_all") else ""
    return (
        f"The service creates a new secret, and signs new tokens for {row} with this secret at once. The API refuses these tokens until "
        f"you enter the new secret in the API. From then on, the API refuses all earlier tokens. {clients} for the API.{users}"
    )


def _has_secret(row: ApiResource) -> bool:
    return bool(row.sealed_signing_secret)


def _can_change(row: ApiResource) -> bool:
    return not row.is_system


def acts_of(owner: ModelAdmin[ApiResource]) -> tuple[ObjectAction, ...]:
    """Return the actions on an API."""

    def rotate(request: HttpRequest, row: ApiResource, _values: dict[str, Any]) -> HttpResponse:
        # Show the secret in the response to this request: a Django message would store the secret until the next page.
        resource, secret = rotate_signing_secret(tenant_id=row.tenant_id, resource_id=row.pk)
        title = f"Signing secret of {resource}"
        return page_beside(owner, request, "admin/signing_secret.html", title, original=resource, secret=secret)

    return (
        ObjectAction(
            ADD_PERMISSION,
            "Add permission",
            lambda _request, row: f"Adds a permission to {row}. You can then give it to roles, users and client grants.",
            _add_permission,
            is_offered=_can_change,
            form_class=NewPermissionForm,
            tab=PERMISSIONS,
            table_permission="authapi.view_permission",
        ),
        ObjectAction(
            "rotate-signing-secret",
            "Create new signing secret",
            _explain_rotation,
            rotate,
            is_offered=_has_secret,
            is_dangerous=True,
            needs_proof=True,
        ),
    )
