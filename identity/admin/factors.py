"""Admin pages of enrolled second factors and passkeys of users, without their secrets."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.people.labels import label_of
from identity.admin.tenant_scope import ReadOnlyAdmin
from identity.factors.user_factors import remove_all_factors, remove_factor
from identity.messages.numbers import masked_address, masked_number
from identity.models import EnrolledFactor, User

Kind = EnrolledFactor.Kind
_WHAT_ENDS = "In remembered browsers, the user is asked for a second factor again"


class ReasonForm(forms.Form):
    """A form with a reason for the audit log."""

    reason = forms.CharField(
        max_length=300, label="Reason", help_text="Recorded in the audit log. You can enter a ticket number. The user does not see it."
    )


class ResetForm(ReasonForm):
    removes_passkeys = forms.BooleanField(required=False, label="Remove the passkeys as well")


def shown_address(factor: EnrolledFactor) -> str:
    """Return the masked address of a factor: enough to recognize it, too little to use it."""
    if not factor.address:
        return ""
    return masked_number(factor.address) if factor.kind == Kind.PHONE else masked_address(factor.address)


def _effect(_request: HttpRequest, row: EnrolledFactor) -> str:
    user, kind = label_of(row.user), row.get_kind_display().lower()
    if row.kind == Kind.PASSKEY:
        return f"{user} can no longer log in with this passkey, and needs another way to log in. {_WHAT_ENDS}."
    if row.kind == Kind.RECOVERY_CODE:
        return f"{user} can no longer use the recovery code in place of a lost factor. {_WHAT_ENDS}."
    sessions = ", and all sessions of the user end" if row.kind == Kind.PHONE else ""
    return (
        f"{user} can no longer use this factor ({kind}). If this is the last factor, an attacker who knows the "
        f"password may be able to log in with the password alone. {_WHAT_ENDS}{sessions}."
    )


def _remove(_request: HttpRequest, row: EnrolledFactor, values: dict[str, Any]) -> str:
    remove_factor(tenant_id=row.tenant_id, user_id=row.user.user_id, device=row.device, reason=values["reason"])
    return f"{row.get_kind_display()} of {label_of(row.user)} removed."


def _reset(_request: HttpRequest, row: User, values: dict[str, Any]) -> str:
    keeps = not values["removes_passkeys"]
    count = remove_all_factors(tenant_id=row.tenant_id, user_id=row.user_id, reason=values["reason"], keeps_passkeys=keeps)
    return f"{count} factor{'' if count == 1 else 's'} of {label_of(row)} removed."


RESET = ObjectAction(
    "reset-factors",
    "Reset second factors",
    lambda _request, row: (
        f"All second factors of {label_of(row)} and the recovery code are removed. Until the user enrolls a new factor, the password "
        f"may be enough to log in. {_WHAT_ENDS}. If a factor is a telephone number, all sessions of the user end. "
        "First check that the request comes from the user."
    ),
    _reset,
    is_offered=lambda row: EnrolledFactor.objects.of(row.tenant_id).filter(user=row, is_confirmed=True).exists(),
    form_class=ResetForm,
    is_dangerous=True,
    permission="identity.change_enrolledfactor",
    needs_proof=True,
)


class EnrolledFactorAdmin(ReadOnlyAdmin[EnrolledFactor], ObjectActionsAdmin[EnrolledFactor]):
    """Staff can remove factors but cannot change them."""

    is_named_by_user = True
    list_display = ("device", "kind", "name", "shown_address", "user", "is_confirmed", "created_at", "last_used_at", "tenant")
    list_select_related = ("user", "tenant")
    search_fields = ("=device", "=user__user_id")
    search_help_text = "Id of a factor or of a user."
    sortable_by = ()
    ordering = ("-pk",)
    actions = ()
    fields = ("device", "tenant", "user", "kind", "name", "shown_address", "is_confirmed", "relying_party", "created_at", "last_used_at")
    empty_text = "No second factors or passkeys yet. Users set them up at a login or on their account page."
    object_actions = (
        ObjectAction("remove", "Remove factor", _effect, _remove, form_class=ReasonForm, is_dangerous=True, needs_proof=True),
    )

    @admin.display(description="Address")
    def shown_address(self, row: EnrolledFactor) -> str:
        return shown_address(row) or "-"
