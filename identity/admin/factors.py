"""Admin pages of second factors and passkeys: what users have enrolled, without anything that proves something."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.tenant_scope import ReadOnlyAdmin
from identity.factors.user_factors import remove_all_factors, remove_factor
from identity.messages.numbers import masked_address, masked_number
from identity.models import EnrolledFactor, User

Kind = EnrolledFactor.Kind
_WHAT_ENDS = "Browsers that were remembered are asked again"


class ReasonForm(forms.Form):
    """The reason stands in the audit log."""

    reason = forms.CharField(
        max_length=300, label="Reason", help_text="For the audit log, such as the number of the request. The user does not see it."
    )


class ResetForm(ReasonForm):
    removes_passkeys = forms.BooleanField(required=False, label="Remove the passkeys, too")


def shown_address(factor: EnrolledFactor) -> str:
    """Return the address of a factor as pages show it: enough to recognize it, too little to use it."""
    if not factor.address:
        return ""
    return masked_number(factor.address) if factor.kind == Kind.PHONE else masked_address(factor.address)


def _effect(_request: HttpRequest, row: EnrolledFactor) -> str:
    user, kind = row.user, row.get_kind_display().lower()
    if row.kind == Kind.PASSKEY:
        return f"{user} can no longer log in with this passkey, and needs another way to log in. {_WHAT_ENDS}."
    if row.kind == Kind.RECOVERY_CODE:
        return f"{user} can no longer stand in for a lost factor with the recovery code. {_WHAT_ENDS}."
    sessions = ", and every session of the user ends" if row.kind == Kind.PHONE else ""
    return (
        f"{user} can no longer prove a login with this factor ({kind}). If it was the last one, an attacker who "
        f"knows the password may log in with it alone. {_WHAT_ENDS}{sessions}."
    )


def _remove(_request: HttpRequest, row: EnrolledFactor, values: dict[str, Any]) -> str:
    remove_factor(tenant_id=row.tenant_id, user_id=row.user.user_id, device=row.device, reason=values["reason"])
    return f"{row.get_kind_display()} of {row.user} is removed."


def _reset(_request: HttpRequest, row: User, values: dict[str, Any]) -> str:
    keeps = not values["removes_passkeys"]
    count = remove_all_factors(tenant_id=row.tenant_id, user_id=row.user_id, reason=values["reason"], keeps_passkeys=keeps)
    return f"{count} factors of {row} are removed."


RESET = ObjectAction(
    "reset-factors",
    "Reset second factors",
    lambda _request, row: (
        f"Every second factor of {row} goes, and the recovery code. Until the user enrolls another one, the password alone may be enough "
        f"to log in. {_WHAT_ENDS}, and with a telephone number every session ends. Make sure that it is the user who asks for it."
    ),
    _reset,
    is_offered=lambda row: EnrolledFactor.objects.of(row.tenant_id).filter(user=row, is_confirmed=True).exists(),
    form_class=ResetForm,
    is_dangerous=True,
    permission="identity.change_enrolledfactor",
    needs_proof=True,
)


class EnrolledFactorAdmin(ReadOnlyAdmin[EnrolledFactor], ObjectActionsAdmin[EnrolledFactor]):
    """Staff remove factors, and do nothing else with them."""

    list_display = ("device", "kind", "name", "shown_address", "user", "is_confirmed", "created_at", "last_used_at", "tenant")
    list_select_related = ("user", "tenant")
    search_fields = ("=device", "=user__user_id")
    search_help_text = "The id of a factor, or that of a user."
    sortable_by = ()
    ordering = ("-pk",)
    actions = ()
    fields = ("device", "tenant", "user", "kind", "name", "shown_address", "is_confirmed", "relying_party", "created_at", "last_used_at")
    empty_text = "No user has enrolled a second factor or a passkey."
    object_actions = (
        ObjectAction("remove", "Remove factor", _effect, _remove, form_class=ReasonForm, is_dangerous=True, needs_proof=True),
    )

    @admin.display(description="Address")
    def shown_address(self, row: EnrolledFactor) -> str:
        return shown_address(row) or "-"
