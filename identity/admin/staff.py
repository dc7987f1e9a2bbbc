"""Admin pages of staff accounts."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest

from foundation.admin.badges import badge
from identity.admin.scope import staff_of, tenant_in_scope
from identity.admin.service_admin import ServiceAdmin
from identity.admin.service_form import ServiceForm
from identity.models import Staff
from identity.services.staff import create_staff, update_staff
from identity.staff_roles import ROLES


def _roles_in_words() -> list[tuple[str, str]]:
    return [(name, f"{rule.label}: {rule.meaning}") for name, rule in ROLES.items()]


class StaffForm(ServiceForm):
    # No default: the administrator must choose the role.
    role = forms.ChoiceField(choices=_roles_in_words, widget=forms.RadioSelect)
    password = forms.CharField(
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least 12 characters, not a common password, and not similar to the email address.",
    )

    class Meta:
        model = Staff
        fields = ()  # The fields are in `fieldsets` of the admin class.
        help_texts = {"is_active": "If this is off, the account cannot log in. Staff accounts cannot be deleted."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Never show the stored hash as the initial value. An empty password keeps the present password.
        self.initial.pop("password", None)
        if self.instance.pk and "password" in self.fields:
            self.fields["password"].required = False
            self.fields["password"].label = "New password"
            self.fields["password"].help_text = f"{self.fields['password'].help_text} If this is empty, the account keeps its password."


class StaffAdmin(ServiceAdmin[Staff]):
    form = StaffForm
    grows = False
    list_display = ("email", "standing", "state", "last_login", "created_at", "tenant")
    list_filter = ("role", "is_active")
    list_select_related = ("tenant",)
    sortable_by = ("email", "last_login")
    ordering = ("email",)
    search_fields = ("email",)
    actions = ()
    proof_for = frozenset({"add", "change"})
    empty_text = "No staff accounts yet. Add one for each person who administers this tenant."

    def get_fieldsets(self, request: HttpRequest, obj: Staff | None = None) -> Any:
        if obj is not None:
            # Staff cannot change their own role, so the page of their own account only shows the role.
            own = ["email", "standing" if obj == staff_of(request) else "role", "is_active", "password"]
            return [(None, {"fields": own}), ("Set by the service", {"fields": ["last_login", "created_at"]})]
        tenant = tenant_in_scope(request)
        place = f"in {tenant} only" if tenant else "in all tenants. For an account of one tenant, switch to this tenant first"
        return [(None, {"fields": ["email", "role", "password"], "description": f"The role applies {place}."})]

    def get_readonly_fields(self, request: HttpRequest, obj: Staff | None = None) -> Any:
        if obj is None:
            return ()
        own_account = ("standing",) if obj == staff_of(request) else ()
        return ("email", *own_account, "last_login", "created_at")

    def has_delete_permission(self, request: HttpRequest, obj: Staff | None = None) -> bool:
        return False

    @admin.display(description="Role", ordering="role")
    def standing(self, row: Staff) -> str:
        return row.standing

    @admin.display(description="State", ordering="is_active")
    def state(self, row: Staff) -> str:
        return badge("Active", "good") if row.is_active else badge("Inactive", "bad")

    def create(self, request: HttpRequest, form: Any) -> Staff:
        values = form.cleaned_data
        return create_staff(tenant_id=tenant_in_scope(request), email=values["email"], password=values["password"], role=values["role"])

    def change(self, request: HttpRequest, row: Staff, form: Any) -> None:
        by = staff_of(request)
        if by is None:
            return
        values = form.cleaned_data
        changed = update_staff(
            staff_id=row.pk, by=by, is_active=values["is_active"], password=values.get("password") or None, role=values.get("role")
        )
        if changed.pk == by.pk:
            update_session_auth_hash(request, changed)
