"""Admin pages of codes and stored tokens: their client, user and expiry. They never show a code, a token or its digest."""

from __future__ import annotations

from typing import Any

from authapi.models import DeviceGrant, DeviceKey
from identity.admin.tenant_scope import ReadOnlyAdmin


class CredentialAdmin(ReadOnlyAdmin[Any]):
    is_short_lived = True
    is_named_by_user = True
    list_display = ("id", "application", "expires", "tenant")
    list_select_related = ("application", "tenant")
    fields = ("tenant", "application", "user", "scope", "expires", "created")


class DeviceGrantAdmin(ReadOnlyAdmin[DeviceGrant]):
    is_short_lived = True
    is_named_by_user = True
    list_display = ("id", "application", "status", "user", "initial_ip", "expires", "used_at", "tenant")
    list_select_related = ("application", "user", "tenant")
    list_filter = ("status",)
    sortable_by = ()
    ordering = ("-pk",)
    fields = (
        "tenant", "application", "status", "user", "audience", "scope", "created", "expires", "last_checked", "used_at", "initial_ip",
        "initial_country", "initial_user_agent", "approved_ip",
    )  # fmt: skip
    empty_text = "No recent device codes."


class DeviceKeyAdmin(ReadOnlyAdmin[DeviceKey]):
    list_display = ("wire_id", "device_name", "user", "client", "created_at", "tenant")
    list_select_related = ("user", "client", "tenant")
    sortable_by = ()
    ordering = ("-pk",)
    fields = ("wire_id", "tenant", "user", "client", "device_name", "device_id", "public_key", "created_at")
    empty_text = "No device keys. Legacy clients register device keys."
