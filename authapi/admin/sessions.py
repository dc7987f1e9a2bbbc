"""Admin pages of sessions, refresh tokens and consents. They never show a token or its digest."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html

from authapi.accounts.access import revoke_session, withdraw_consent
from authapi.login.sessions import end_session
from authapi.models import Consent, Initiator, LogoutNotice, RefreshToken, Session, SessionClient
from authapi.row_acts import END_SESSIONS, REVOKE_TOKENS, WITHDRAW_CONSENTS, revoke_token
from foundation.admin.badges import badge
from foundation.admin.json_fields import pretty
from foundation.admin.panels import Cell, Panel
from identity.admin.bulk_actions import bulk_action
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.people.labels import label_of
from identity.admin.tenant_scope import ReadOnlyAdmin

_END_MANY = "The users must log in again in these browsers. Applications with a refresh token keep their access until the token expires."
_REVOKE_MANY = (
    "Applications can no longer get access tokens with these refresh tokens, or with refresh tokens that replaced them in a rotation."
)
_REASONS_OF_LOGOUTS: dict[str, str] = {
    Initiator.RP_LOGOUT: "Logout at an application",
    Initiator.IDP_LOGOUT: "Logout at the identity provider",
    Initiator.PASSWORD_CHANGED: "Password changed",
    Initiator.SESSION_EXPIRED: "Session expired",
    Initiator.SESSION_REVOKED: "Session revoked",
    Initiator.ACCOUNT_DELETED: "User deleted",
    Initiator.EMAIL_IDENTIFIER_CHANGED: "Email address changed",
    Initiator.MFA_PHONE_UNENROLLED: "Phone number of a second factor removed",
    Initiator.ACCOUNT_DEACTIVATED: "User blocked",
    Initiator.PROFILE_CHANGED: "Profile changed",
}
_WITHDRAW_MANY = "The applications must ask the users for consent again, and refresh tokens that depend on these consents are revoked."


class EndableAdmin(ReadOnlyAdmin[Any], ObjectActionsAdmin[Any]):
    """Base class of admin pages whose rows, such as sessions, staff can end but not edit."""

    sortable_by = ()


def _end(_request: HttpRequest, row: Session, _values: dict[str, Any]) -> str:
    end_session(row, reason=Initiator.SESSION_REVOKED)
    return f"Session of {label_of(row.user)} ended."


def _end_with_tokens(_request: HttpRequest, row: Session, _values: dict[str, Any]) -> str:
    revoke_session(row)
    return f"Session of {label_of(row.user)} and its refresh tokens ended."


def _revoke(_request: HttpRequest, row: RefreshToken, _values: dict[str, Any]) -> str:
    revoke_token(row)
    return f"Refresh token of {label_of(row.user)} at {row.application} revoked."


def _withdraw(_request: HttpRequest, row: Consent, _values: dict[str, Any]) -> str:
    withdraw_consent(row)
    return f"Consent of {label_of(row.user)} for {row.client} withdrawn."


class SessionAdmin(EndableAdmin):
    is_named_by_user = True
    list_display = ("id", "user", "connection", "device", "last_interacted_at", "expires_at", "tenant")
    list_select_related = ("user", "connection", "tenant")
    search_fields = ("=id", "=user__user_id")
    search_help_text = "The id of a session or of a user."
    readonly_fields = ("proofs",)
    actions = (bulk_action(END_SESSIONS, permission="end", effect=_END_MANY, is_dangerous=True),)
    empty_text = "No active sessions."
    fields = (
        "id", "tenant", "user", "connection", "organization", "proofs", "is_persistent", "authenticated_at", "created_at",
        "last_interacted_at", "idle_expires_at", "expires_at", "initial_ip", "initial_user_agent", "last_ip", "last_user_agent", "metadata",
    )  # fmt: skip
    object_actions = (
        ObjectAction(
            "end",
            "End this session",
            lambda _request, row: (
                f"{label_of(row.user)} must log in again in this browser. Refresh tokens that applications got in this session stay valid."
            ),
            _end,
            is_dangerous=True,
        ),
        ObjectAction(
            "revoke",
            "End the session and its refresh tokens",
            lambda _request, row: (
                f"{label_of(row.user)} must log in again in this browser, and the refresh tokens that applications got in this "
                "session are revoked."
            ),
            _end_with_tokens,
            is_dangerous=True,
        ),
    )

    def __init__(self, model: type[Session], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self.panels.append(_clients_of)

    def badge_of(self, row: Session) -> str:
        is_over = min(row.idle_expires_at, row.expires_at) <= timezone.now()
        return badge("Expired", "quiet") if is_over else badge("Active", "good")

    def has_end_permission(self, request: HttpRequest) -> bool:
        return may_change(request, "authapi.change_session")

    @admin.display(description="Authentication methods")
    def proofs(self, row: Session) -> str:
        return ", ".join(f"{one['name']} at {str(one['timestamp'])[:19].replace('T', ' ')}" for one in row.methods) or "-"

    @admin.display(description="Device")
    def device(self, row: Session) -> str:
        return " ".join(part for part in (row.last_ip, row.last_user_agent[:60]) if part) or "-"


class SessionClientAdmin(ReadOnlyAdmin[SessionClient]):
    list_display = ("session", "client", "created_at", "tenant")
    list_select_related = ("session", "client", "tenant")
    search_fields = ("=session__id", "=client__client_id")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "session", "client", "created_at")
    empty_text = "No clients in sessions. A row appears when a user logs in to a client."

    def heading_of(self, row: SessionClient) -> str:
        return f"{row.client} in {row.session}"


class LogoutNoticeAdmin(ReadOnlyAdmin[LogoutNotice]):
    is_short_lived = True
    list_display = ("client", "subject", "reason", "attempts", "due_at", "tenant")
    list_select_related = ("client", "tenant")
    search_fields = ("=client__client_id", "=subject")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "client", "url", "reason", "sid", "subject", "attempts", "due_at", "created_at")
    readonly_fields = ("reason",)
    empty_text = "No pending logout notices."

    @admin.display(description="Reason")
    def reason(self, row: LogoutNotice) -> str:
        return _REASONS_OF_LOGOUTS.get(row.initiator, row.initiator)


class RefreshTokenAdmin(EndableAdmin):
    is_named_by_user = True
    list_display = ("wire_id", "user", "application", "state", "last_exchanged_at", "expires_at", "tenant")
    list_select_related = ("user", "application", "tenant")
    ordering = ("-pk",)
    actions = (bulk_action(REVOKE_TOKENS, permission="end", effect=_REVOKE_MANY, is_dangerous=True),)
    empty_text = "No refresh tokens yet. Applications get them with the scope offline_access, if the API allows refresh tokens."
    fields = (
        "wire_id", "tenant", "application", "user", "audience", "scope", "sid", "is_rotating", "created", "last_exchanged_at",
        "idle_expires_at", "expires_at", "revoked", "initial_ip", "initial_user_agent", "last_ip", "last_user_agent", "metadata",
    )  # fmt: skip
    object_actions = (
        ObjectAction(
            "revoke",
            "Revoke token",
            lambda _request, row: (
                f"{row.application} can no longer get access tokens for {label_of(row.user)} with this refresh token, or with refresh "
                "tokens that replaced it in a rotation."
            ),
            _revoke,
            is_offered=lambda row: row.revoked is None,
            is_dangerous=True,
        ),
    )

    def has_end_permission(self, request: HttpRequest) -> bool:
        return may_change(request, "authapi.change_refreshtoken")

    @admin.display(description="State")
    def state(self, row: RefreshToken) -> str:
        if row.revoked is not None:
            return badge("Rotated" if row.is_rotated else "Revoked", "quiet" if row.is_rotated else "bad")
        now = timezone.now()
        is_over = any(end is not None and end <= now for end in (row.expires_at, row.idle_expires_at))
        return badge("Expired", "quiet") if is_over else badge("Active", "good")


class ConsentAdmin(EndableAdmin):
    is_named_by_user = True
    list_display = ("user", "client", "api", "scope_list", "updated_at", "tenant")
    list_select_related = ("user", "client", "tenant")
    list_display_links = ("user",)
    search_fields = ("=user__user_id", "=client__client_id")
    search_help_text = "The id of a user or of a client."
    ordering = ("-pk",)
    actions = (bulk_action(WITHDRAW_CONSENTS, permission="end", effect=_WITHDRAW_MANY, is_dangerous=True),)
    empty_text = "No consents yet. Users are asked for consent by third-party applications, and by requests with prompt=consent."
    fields = ("tenant", "user", "client", "audience", "scopes", "further", "created_at", "updated_at")
    object_actions = (
        ObjectAction(
            "withdraw",
            "Withdraw consent",
            lambda _request, row: (
                f"{row.client} must ask {label_of(row.user)} for consent again, and refresh tokens that depend on this consent are revoked."
            ),
            _withdraw,
            is_dangerous=True,
        ),
    )

    def has_end_permission(self, request: HttpRequest) -> bool:
        return may_change(request, "authapi.change_consent")

    @admin.display(description="API")
    def api(self, row: Consent) -> str:
        return row.audience or "Profile of the user"

    @admin.display(description="Scopes")
    def scope_list(self, row: Consent) -> str:
        return ", ".join(row.scopes) or "-"

    @admin.display(description="Other things that the user allowed")
    def further(self, row: Consent) -> str:
        return format_html("<pre>{}</pre>", pretty(row.asked)) if row.asked else "-"


def may_change(request: HttpRequest, permission: str) -> bool:
    """Tell whether the staff account may end rows of this kind. No staff account may edit them."""
    return bool(getattr(request.user, "is_active", False) and request.user.has_perm(permission))


def _clients_of(_request: HttpRequest, row: Session) -> Panel:
    entries = row.session_clients.select_related("client").order_by("created_at", "pk")[:50]
    rows = [(Cell(str(entry.client)), Cell(entry.client.client_id), Cell(f"{entry.created_at:%Y-%m-%d %H:%M}")) for entry in entries]
    return Panel(
        "Applications in this session", ("Client", "Client id", "Since (UTC)"), rows, "No application has received tokens in this session."
    )
