"""Admin pages of brute-force protection: counts of failed logins, blocks, and lifting them."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest

from authapi.accounts.user_blocks import lift_block
from authapi.admin.sessions import EndableAdmin, may_change
from authapi.models import LoginFailures
from authapi.row_acts import LIFT_BLOCKS
from foundation.admin.badges import badge
from identity.admin.bulk_actions import bulk_action
from identity.admin.object_actions import ObjectAction

_LIFT_MANY = "The failed logins are forgotten, and the counts begin anew."


def _lift(_request: HttpRequest, row: LoginFailures, _values: dict[str, Any]) -> str:
    lift_block(row)
    return f"{row.identifier} may try again."


class BlockedFilter(admin.EmptyFieldListFilter):
    """Who is blocked now, and who is only counted."""

    _WORDS: ClassVar = {"Empty": "No", "Not empty": "Yes"}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.title = "blocked"

    def choices(self, changelist: Any) -> Any:
        for choice in super().choices(changelist):
            yield {**choice, "display": self._WORDS.get(str(choice["display"]), choice["display"])}


class LoginFailuresAdmin(EndableAdmin):
    list_display = ("identifier", "address", "state", "count", "connection", "last_failed_at", "tenant")
    list_select_related = ("connection", "tenant")
    list_filter = (("blocked_at", BlockedFilter),)
    search_fields = ("=identifier",)
    search_help_text = "A whole e-mail address, username or phone number, in lower case."
    ordering = ("-pk",)
    actions = (bulk_action(LIFT_BLOCKS, permission="end", effect=_LIFT_MANY),)
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
