"""Admin pages of rows that are soon deleted: pushed requests, logins and logouts in progress, mailed links and codes, used assertions."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from authapi.login.remembered_browsers import forget_one
from authapi.models import (
    AccountTicket,
    CibaRequest,
    FactorChallenge,
    FactorTransaction,
    LoginTicket,
    LoginTransaction,
    LogoutTransaction,
    PasskeyCeremony,
    PasswordlessCode,
    PushedRequest,
    RememberedBrowser,
    UsedAssertion,
)
from foundation.admin.field_labels import sentence_of
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.people.labels import label_of
from identity.admin.tenant_scope import ReadOnlyAdmin

_PROTOCOLS_IN_WORDS = {
    "oauth": "OpenID Connect or OAuth 2.0",
    "samlp": "SAML",
    "wsfed": "WS-Federation",
    "device": "Device code",
    "ciba": "Approval on another device (CIBA)",
    "account": "Account page",
}
_PURPOSES_OF_CHALLENGES = {"use": "Login", "enroll": "Confirmation of a new second factor"}


class LoginTransactionAdmin(ReadOnlyAdmin[LoginTransaction]):
    titled = "Login in progress at {row.client}"
    is_short_lived = True
    list_display = ("id", "client", "protocol_in_words", "created_at", "expires_at", "tenant")
    list_select_related = ("client", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "client", "protocol_in_words", "session", "created_at", "expires_at")
    readonly_fields = ("protocol_in_words",)
    empty_text = "No logins in progress."

    @admin.display(description="Protocol")
    def protocol_in_words(self, row: LoginTransaction) -> str:
        return _PROTOCOLS_IN_WORDS.get(row.protocol, row.protocol)


class LogoutTransactionAdmin(ReadOnlyAdmin[LogoutTransaction]):
    titled = "Logout in progress {row.pk}"
    is_short_lived = True
    list_display = ("id", "created_at", "expires_at", "tenant")
    list_select_related = ("tenant",)
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "created_at", "expires_at")
    empty_text = "No logouts in progress."


class AccountTicketAdmin(ReadOnlyAdmin[AccountTicket]):
    is_named_by_user = True
    list_display = ("id", "purpose_in_words", "user", "created_at", "expires_at", "used_at", "tenant")
    list_select_related = ("user", "tenant")
    list_filter = ("purpose",)
    search_fields = ("=user__user_id",)
    search_help_text = "Id of a user."
    sortable_by = ()
    ordering = ("-created_at", "-pk")
    fields = ("id", "tenant", "purpose_in_words", "user", "client", "created_at", "expires_at", "used_at")
    readonly_fields = ("purpose_in_words",)
    empty_text = "No recent links."

    @admin.display(description="Purpose")
    def purpose_in_words(self, row: AccountTicket) -> str:
        return sentence_of(row.purpose, row.get_purpose_display())


class UsedAssertionAdmin(ReadOnlyAdmin[UsedAssertion]):
    titled = "Used assertion {row.pk}"
    is_short_lived = True
    list_display = ("id", "expires_at", "tenant")
    list_select_related = ("tenant",)
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "expires_at")
    empty_text = "No used assertions."


class PushedRequestAdmin(ReadOnlyAdmin[PushedRequest]):
    titled = "Pushed request of {row.client}"
    is_short_lived = True
    list_display = ("id", "client", "created_at", "expires_at", "tenant")
    list_select_related = ("client", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "client", "created_at", "expires_at")
    empty_text = "No recent pushed requests."


class LoginTicketAdmin(ReadOnlyAdmin[LoginTicket]):
    is_short_lived = True
    is_named_by_user = True
    list_display = ("id", "client", "user", "origin", "created_at", "expires_at", "tenant")
    list_select_related = ("client", "user", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "client", "user", "connection", "origin", "created_at", "expires_at")
    empty_text = "No open login tickets of legacy clients."


class PasswordlessCodeAdmin(ReadOnlyAdmin[PasswordlessCode]):
    titled = "Code or link for {row.address}"
    is_short_lived = True
    list_display = ("id", "connection", "address", "client", "created_at", "expires_at", "used_at", "failures", "tenant")
    list_select_related = ("connection", "client", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "client", "connection", "address", "created_at", "code_expires_at", "expires_at", "used_at", "failures")
    empty_text = "No recent codes or links."


class CibaRequestAdmin(ReadOnlyAdmin[CibaRequest]):
    is_short_lived = True
    is_named_by_user = True
    list_display = ("id", "application", "user", "status", "created", "expires", "used_at", "tenant")
    list_select_related = ("application", "user", "tenant")
    search_fields = ("=user__user_id",)
    sortable_by = ()
    ordering = ("-pk",)
    fields = (
        "tenant", "application", "user", "binding_message", "audience", "scope", "channel", "status", "created", "expires", "used_at",
        "initial_ip", "approved_ip",
    )  # fmt: skip
    empty_text = "No recent approval requests."


class FactorChallengeAdmin(ReadOnlyAdmin[FactorChallenge]):
    is_short_lived = True
    is_named_by_user = True
    list_display = ("id", "user", "purpose_in_words", "created_at", "expires_at", "used_at", "failures", "tenant")
    list_select_related = ("user", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "user", "purpose_in_words", "created_at", "expires_at", "used_at", "failures")
    readonly_fields = ("purpose_in_words",)
    empty_text = "No recent codes or challenges."

    @admin.display(description="Purpose")
    def purpose_in_words(self, row: FactorChallenge) -> str:
        return _PURPOSES_OF_CHALLENGES.get(row.purpose, row.purpose)


class FactorTransactionAdmin(ReadOnlyAdmin[FactorTransaction]):
    is_short_lived = True
    is_named_by_user = True
    list_display = ("id", "user", "client", "created_at", "expires_at", "used_at", "tenant")
    list_select_related = ("user", "client", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "user", "client", "connection", "organization", "audience", "scope", "created_at", "expires_at", "used_at")
    empty_text = "No logins wait for a second factor."


class PasskeyCeremonyAdmin(ReadOnlyAdmin[PasskeyCeremony]):
    titled = "Passkey login or sign-up at {row.client}"
    is_short_lived = True
    list_display = ("id", "client", "connection", "relying_party", "is_registration", "created_at", "expires_at", "used_at", "tenant")
    list_select_related = ("client", "connection", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = (
        "tenant", "client", "connection", "organization", "relying_party", "is_registration", "created_at", "expires_at", "used_at",
    )  # fmt: skip
    empty_text = "No recent passkey logins or sign-ups."


def _forget(_request: HttpRequest, row: RememberedBrowser, _values: dict[str, Any]) -> str:
    forget_one(row)
    return f"{label_of(row.user)} must use the second factor in this browser again."


class RememberedBrowserAdmin(ReadOnlyAdmin[RememberedBrowser], ObjectActionsAdmin[RememberedBrowser]):
    is_short_lived = True
    is_named_by_user = True
    list_display = ("id", "user", "ip", "user_agent", "created_at", "last_used_at", "expires_at", "tenant")
    list_select_related = ("user", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "user", "ip", "user_agent", "created_at", "last_used_at", "expires_at")
    empty_text = "No remembered browsers."
    object_actions = (
        ObjectAction(
            "forget",
            "Forget this browser",
            lambda _request, row: f"{label_of(row.user)} must use the second factor at the next login in this browser.",
            _forget,
            is_dangerous=True,
        ),
    )
