"""Admin pages of rows that live for a while: pushed requests, logins and logouts under way, mailed links and codes, used assertions."""

from __future__ import annotations

from typing import Any

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
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.tenant_scope import ReadOnlyAdmin


class LoginTransactionAdmin(ReadOnlyAdmin[LoginTransaction]):
    is_short_lived = True
    list_display = ("id", "client", "protocol", "created_at", "expires_at", "tenant")
    list_select_related = ("client", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "client", "protocol", "session", "created_at", "expires_at")
    empty_text = "No login is under way."


class LogoutTransactionAdmin(ReadOnlyAdmin[LogoutTransaction]):
    is_short_lived = True
    list_display = ("id", "created_at", "expires_at", "tenant")
    list_select_related = ("tenant",)
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "created_at", "expires_at")
    empty_text = "No logout is under way."


class AccountTicketAdmin(ReadOnlyAdmin[AccountTicket]):
    list_display = ("id", "purpose", "user", "created_at", "expires_at", "used_at", "tenant")
    list_select_related = ("user", "tenant")
    list_filter = ("purpose",)
    search_fields = ("=user__user_id",)
    sortable_by = ()
    ordering = ("-created_at", "-pk")
    fields = ("id", "tenant", "purpose", "user", "client", "created_at", "expires_at", "used_at")
    empty_text = "No link to set a password, to lift a block or to set up a second factor was made lately."


class UsedAssertionAdmin(ReadOnlyAdmin[UsedAssertion]):
    is_short_lived = True
    list_display = ("id", "expires_at", "tenant")
    list_select_related = ("tenant",)
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "expires_at")
    empty_text = "No assertion of a client is being remembered."


class PushedRequestAdmin(ReadOnlyAdmin[PushedRequest]):
    is_short_lived = True
    list_display = ("id", "client", "created_at", "expires_at", "tenant")
    list_select_related = ("client", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "client", "created_at", "expires_at")
    empty_text = "No client has pushed an authorization request lately."


class LoginTicketAdmin(ReadOnlyAdmin[LoginTicket]):
    is_short_lived = True
    list_display = ("id", "client", "user", "origin", "created_at", "expires_at", "tenant")
    list_select_related = ("client", "user", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "client", "user", "connection", "origin", "created_at", "expires_at")
    empty_text = "No browser is on its way with a login ticket of an old client."


class PasswordlessCodeAdmin(ReadOnlyAdmin[PasswordlessCode]):
    is_short_lived = True
    list_display = ("id", "connection", "address", "client", "created_at", "expires_at", "used_at", "failures", "tenant")
    list_select_related = ("connection", "client", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "client", "connection", "address", "created_at", "code_expires_at", "expires_at", "used_at", "failures")
    empty_text = "No code or link for a login without a password has been asked for lately."


class CibaRequestAdmin(ReadOnlyAdmin[CibaRequest]):
    is_short_lived = True
    list_display = ("id", "application", "user", "status", "created", "expires", "used_at", "tenant")
    list_select_related = ("application", "user", "tenant")
    search_fields = ("=user__user_id",)
    sortable_by = ()
    ordering = ("-pk",)
    fields = (
        "tenant", "application", "user", "binding_message", "audience", "scope", "channel", "status", "created", "expires", "used_at",
        "initial_ip", "approved_ip",
    )  # fmt: skip
    empty_text = "No application has asked a user for an approval lately."


class FactorChallengeAdmin(ReadOnlyAdmin[FactorChallenge]):
    is_short_lived = True
    list_display = ("id", "user", "purpose", "created_at", "expires_at", "used_at", "failures", "tenant")
    list_select_related = ("user", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "user", "purpose", "created_at", "expires_at", "used_at", "failures")
    empty_text = "No second factor has been asked for lately."


class FactorTransactionAdmin(ReadOnlyAdmin[FactorTransaction]):
    is_short_lived = True
    list_display = ("id", "user", "client", "created_at", "expires_at", "used_at", "tenant")
    list_select_related = ("user", "client", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "user", "client", "connection", "organization", "audience", "scope", "created_at", "expires_at", "used_at")
    empty_text = "No application is asking for a second factor."


class PasskeyCeremonyAdmin(ReadOnlyAdmin[PasskeyCeremony]):
    is_short_lived = True
    list_display = ("id", "client", "connection", "relying_party", "is_registration", "created_at", "expires_at", "used_at", "tenant")
    list_select_related = ("client", "connection", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = (
        "tenant", "client", "connection", "organization", "relying_party", "is_registration", "created_at", "expires_at", "used_at",
    )  # fmt: skip
    empty_text = "No passkey has been asked for lately."


def _forget(_request: HttpRequest, row: RememberedBrowser, _values: dict[str, Any]) -> str:
    forget_one(row)
    return f"{row.user} is asked for the second factor in this browser again."


class RememberedBrowserAdmin(ReadOnlyAdmin[RememberedBrowser], ObjectActionsAdmin[RememberedBrowser]):
    is_short_lived = True
    list_display = ("id", "user", "ip", "user_agent", "created_at", "last_used_at", "expires_at", "tenant")
    list_select_related = ("user", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "user", "ip", "user_agent", "created_at", "last_used_at", "expires_at")
    empty_text = "No browser is spared the second factor."
    object_actions = (
        ObjectAction(
            "forget",
            "Forget this browser",
            lambda _request, row: f"{row.user} is asked for the second factor at the next login in this browser.",
            _forget,
            is_dangerous=True,
        ),
    )
