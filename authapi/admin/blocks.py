"""Admin pages of attack protection: failed logins, blocked accounts and addresses, and known browsers. Staff can lift blocks."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone

from authapi.accounts import suspicion
from authapi.accounts.user_blocks import lift_block
from authapi.admin.attack_fields import STAGES_IN_WORDS
from authapi.admin.sessions import EndableAdmin, may_change
from authapi.models import AddressBlock, AttackNotice, LoginFailures
from authapi.row_acts import FORGET_BROWSERS, LIFT_ADDRESSES, LIFT_BLOCKS
from foundation.admin.badges import badge
from foundation.admin.field_labels import sentence_of
from foundation.admin.list_filters import RecentValuesFilter, worded
from identity.admin.bulk_actions import bulk_action
from identity.admin.object_actions import ObjectAction
from identity.admin.tenant_scope import ReadOnlyAdmin

_LIFT_MANY = "The failed logins are deleted, and the users can try to log in again. Counting starts again."


def _lift(_request: HttpRequest, row: LoginFailures, _values: dict[str, Any]) -> str:
    lift_block(row)
    return f"{row.identifier} can try to log in again."


class BlockedFilter(admin.EmptyFieldListFilter):
    """Filters the list: rows that block a login, or rows with fewer failures than the threshold."""

    _WORDS: ClassVar = {"Empty": "No", "Not empty": "Yes"}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.title = "blocked"

    def choices(self, changelist: Any) -> Any:
        for choice in super().choices(changelist):
            yield {**choice, "display": self._WORDS.get(str(choice["display"]), choice["display"])}


class LoginFailuresAdmin(EndableAdmin):
    titled = "Failed logins of {row.identifier}"
    list_display = ("identifier", "address", "state", "count", "connection", "last_failed_at", "tenant")
    list_select_related = ("connection", "tenant")
    list_filter = (("blocked_at", BlockedFilter),)
    search_fields = ("=identifier",)
    search_help_text = "A complete email address, username or phone number in lower case."
    ordering = ("-pk",)
    actions = (bulk_action(LIFT_BLOCKS, permission="end", effect=_LIFT_MANY),)
    empty_text = "No recent failed logins."
    fields = ("tenant", "connection", "identifier", "address", "state", "count", "last_failed_at", "blocked_at")
    readonly_fields = ("address", "state")
    object_actions = (
        ObjectAction(
            "lift",
            "Lift block",
            lambda _request, row: (
                f"The failed logins of {row.identifier} from {row.ip or 'all IP addresses'} are deleted. Counting starts again."
            ),
            _lift,
        ),
    )

    def has_end_permission(self, request: HttpRequest) -> bool:
        return may_change(request, "authapi.change_loginfailures")

    @admin.display(description="IP address")
    def address(self, row: LoginFailures) -> str:
        return row.ip or "All"

    @admin.display(description="State")
    def state(self, row: LoginFailures) -> str:
        return badge("Blocked", "bad") if row.blocked_at else badge("Not blocked", "quiet")


class ReasonForm(forms.Form):
    """The reason for lifting a block."""

    reason = forms.CharField(max_length=500, widget=forms.Textarea(attrs={"rows": 2, "cols": 60}), help_text="Recorded in the audit log.")


def _lift_address(_request: HttpRequest, row: AddressBlock, _values: dict[str, Any]) -> str:
    suspicion.lift_block(row)
    return f"{row.address} has all its attempts again."


class AddressBlockAdmin(EndableAdmin):
    titled = "Block of {row.address}"
    list_display = ("address", "kind_of_attempts", "state", "blocked_at", "last_refused_at", "ends_at", "tenant")
    list_select_related = ("tenant",)
    list_filter = (("stage", worded(RecentValuesFilter, STAGES_IN_WORDS)),)
    search_fields = ("=address",)
    search_help_text = "A complete IPv4 address, or the /64 network of an IPv6 address, such as 2001:db8:1:2::/64."
    ordering = ("-pk",)
    actions = (bulk_action(LIFT_ADDRESSES, permission="end", effect="The IP addresses have all their attempts again."),)
    empty_text = "No blocked addresses. An IP address appears here when it has used up its attempts."
    fields = ("tenant", "address", "kind_of_attempts", "state", "blocked_at", "last_refused_at", "ends_at")
    readonly_fields = ("kind_of_attempts", "state")
    object_actions = (
        ObjectAction(
            "lift",
            "Lift block",
            lambda _request, row: f"{row.address} has all its attempts for logins, sign-ups and token exchanges again.",
            _lift_address,
            form_class=ReasonForm,
        ),
    )

    def has_end_permission(self, request: HttpRequest) -> bool:
        return may_change(request, "authapi.change_addressblock")

    @admin.display(description="Kind of attempts")
    def kind_of_attempts(self, row: AddressBlock) -> str:
        return STAGES_IN_WORDS.get(row.stage, row.stage)

    @admin.display(description="State")
    def state(self, row: AddressBlock) -> str:
        if not row.is_refused:
            return badge("Not blocked", "quiet")
        return badge("Blocked", "bad") if row.ends_at > timezone.now() else badge("Expired", "quiet")


class KnownBrowserAdmin(EndableAdmin):
    is_named_by_user = True
    list_display = ("id", "user", "created_at", "last_seen_at", "told_at", "tenant")
    list_select_related = ("user", "tenant")
    search_fields = ("=user__user_id",)
    search_help_text = "The id of a user."
    ordering = ("-pk",)
    actions = (
        bulk_action(
            FORGET_BROWSERS,
            permission="end",
            effect="These browsers are new again: at their next login, the user gets an email, if the sign-in settings send such emails.",
        ),
    )
    empty_text = "No known browsers."
    fields = ("tenant", "user", "created_at", "last_seen_at", "told_at")

    def has_end_permission(self, request: HttpRequest) -> bool:
        return may_change(request, "authapi.change_knownbrowser")


class AttackNoticeAdmin(ReadOnlyAdmin[AttackNotice]):
    list_display = ("kind_in_words", "since", "due_at", "sent_at", "tenant")
    list_select_related = ("tenant",)
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "kind_in_words", "since", "due_at", "sent_at")
    readonly_fields = ("kind_in_words",)
    empty_text = "No attack notifications."

    @admin.display(description="Kind")
    def kind_in_words(self, row: AttackNotice) -> str:
        return sentence_of(row.kind, row.get_kind_display())

    def heading_of(self, row: AttackNotice) -> str:
        return f"Notification: {self.kind_in_words(row).lower()}"
