"""Admin pages of what waits or proves something for a while: requests to log in, mailed links, used assertions."""

from __future__ import annotations

from authapi.models import AccountTicket, AuthorizationRequest, UsedAssertion
from identity.admin.tenant_scope import ReadOnlyAdmin


class AuthorizationRequestAdmin(ReadOnlyAdmin[AuthorizationRequest]):
    is_short_lived = True
    list_display = ("id", "client", "created_at", "expires_at", "tenant")
    list_select_related = ("client", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "client", "session", "created_at", "expires_at")
    empty_text = "Nobody is on the way through the login pages."


class AccountTicketAdmin(ReadOnlyAdmin[AccountTicket]):
    list_display = ("id", "purpose", "user", "created_at", "expires_at", "used_at", "tenant")
    list_select_related = ("user", "tenant")
    list_filter = ("purpose",)
    search_fields = ("=user__user_id",)
    sortable_by = ()
    ordering = ("-created_at", "-pk")
    fields = ("id", "tenant", "purpose", "user", "client", "created_at", "expires_at", "used_at")
    empty_text = "No link to set a password or to lift a block has been mailed lately."


class UsedAssertionAdmin(ReadOnlyAdmin[UsedAssertion]):
    is_short_lived = True
    list_display = ("id", "expires_at", "tenant")
    list_select_related = ("tenant",)
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("tenant", "expires_at")
    empty_text = "No assertion of a client is being remembered."
