"""Admin pages of codes and stored tokens: that they exist, for whom, and until when. Never a value, nor its checksum."""

from __future__ import annotations

from typing import Any

from authapi.models import DeviceGrant
from identity.admin.tenant_scope import ReadOnlyAdmin


class CredentialAdmin(ReadOnlyAdmin[Any]):
    is_short_lived = True
    list_display = ("id", "application", "expires", "tenant")
    list_select_related = ("application", "tenant")
    fields = ("tenant", "application", "user", "scope", "expires", "created")


class DeviceGrantAdmin(ReadOnlyAdmin[DeviceGrant]):
    is_short_lived = True
    list_display = ("id", "status", "expires", "tenant")
    list_select_related = ("tenant",)
    fields = ("tenant", "user", "scope", "status", "expires")
