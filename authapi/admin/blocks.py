"""Admin pages of brute-force protection: counts of failed logins, blocks, and lifting them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest

from authapi.admin.sessions import EndableAdmin, may_change
from authapi.models import LoginFailures
from authapi.services.user_blocks import lift_block
from identity.admin.badges import badge
from identity.admin.object_actions import ObjectAction


@admin.action(description="Lift selected blocks", permissions=["end"])
def lift_selected(model_admin: LoginFailuresAdmin, request: HttpRequest, rows: models.QuerySet[LoginFailures]) -> None:
    model_admin.end_rows(request, rows, lift_block, "lifted")


def _lift(_request: HttpRequest, row: LoginFailures, _values: dict[str, Any]) -> str:
    lift_block(row)
    return f"{row.identifier} may try again."


class LoginFailuresAdmin(EndableAdmin):
    list_display = ("identifier", "address", "state", "count", "connection", "last_failed_at", "tenant")
    list_select_related = ("connection", "tenant")
    list_filter = (("blocked_at", admin.EmptyFieldListFilter),)
    search_fields = ("=identifier",)
    search_help_text = "A whole e-mail address, username or phone number, in lower case."
    ordering = ("-pk",)
    actions = (lift_selected,)
    empty_text = "Nobody has failed to log in lately."
    fields = ("tenant", "connection", "identifier", "address", "state", "count", "last_failed_at", "blocked_at")
    readonly_fields = ("address", "state")
    object_actions = (
        ObjectAction(
            "lift",
            "Lift",
            lambda _request, row: (
                f"The failures of {row.identifier} from {row.ip or 'every address'} are forgotten, and the count begins anew."
            ),
            _lift,
        ),
    )

    def has_end_permission(self, request: HttpRequest) -> bool:
        return may_change(request, "authapi.change_loginfailures")

    @admin.display(description="Address")
    def address(self, row: LoginFailures) -> str:
        return row.ip or "every address"

    @admin.display(description="State")
    def state(self, row: LoginFailures) -> str:
        return badge("Blocked", "bad") if row.blocked_at else badge("Counting", "quiet")
