"""Admin pages of this app, for our own site. Secrets and keys are never shown; codes and tokens are never searched."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from authapi.models import (
    AccessToken,
    ApiResource,
    AuthorizationCode,
    Client,
    ClientGrant,
    DeviceGrant,
    IDToken,
    RefreshToken,
    RevokedToken,
    SigningKey,
)
from identity.admin.tenant_scope import ReadOnlyAdmin


class ClientAdmin(ReadOnlyAdmin[Client]):
    """Clients are made and changed by services: a form could neither show a secret once nor end tokens."""

    list_display = ("name", "client_id", "tenant", "is_global", "token_endpoint_auth_method", "revoked_at", "created")
    list_filter = ("is_global", "token_endpoint_auth_method")
    list_select_related = ("tenant",)
    search_fields = ("name", "client_id")
    fields = (
        "tenant", "name", "client_id", "is_global", "token_endpoint_auth_method", "grant_types",
        "redirect_uris", "post_logout_redirect_uris", "allowed_origins", "metadata",
        "auth_version", "revoked_at", "created", "updated",
    )  # fmt: skip


class ApiResourceAdmin(ReadOnlyAdmin[ApiResource]):
    list_display = ("name", "identifier", "tenant", "token_dialect", "token_lifetime", "is_system")
    list_select_related = ("tenant",)
    search_fields = ("name", "identifier")


class ClientGrantAdmin(ReadOnlyAdmin[ClientGrant]):
    list_display = ("id", "client", "api_resource", "tenant", "updated_at")
    list_select_related = ("client", "api_resource", "tenant")
    search_fields = ("id", "client__client_id", "client__name")


class SigningKeyAdmin(ReadOnlyAdmin[SigningKey]):
    list_display = ("kid", "tenant", "state", "created_at", "rotated_at", "verifies_until")
    list_filter = ("state",)
    list_select_related = ("tenant",)
    fields = ("tenant", "kid", "state", "public_jwk", "created_at", "current_since", "rotated_at", "verifies_until")


class RevokedTokenAdmin(ReadOnlyAdmin[RevokedToken]):
    list_display = ("id", "tenant", "created_at", "expires_at")
    list_select_related = ("tenant",)
    fields = ("tenant", "created_at", "expires_at")


class CredentialAdmin(ReadOnlyAdmin[Any]):
    """Codes and tokens: that they exist, for whom, and until when. Never the value, nor its checksum."""

    list_display = ("id", "tenant", "application", "expires")
    list_select_related = ("tenant", "application")
    fields = ("tenant", "application", "user", "scope", "expires", "created")


class RefreshTokenAdmin(ReadOnlyAdmin[RefreshToken]):
    list_display = ("id", "tenant", "application", "created", "revoked")
    list_select_related = ("tenant", "application")
    fields = ("tenant", "application", "user", "created", "revoked")


class DeviceGrantAdmin(ReadOnlyAdmin[DeviceGrant]):
    list_display = ("id", "tenant", "status", "expires")
    list_select_related = ("tenant",)
    fields = ("tenant", "user", "scope", "status", "expires")


def register(site: admin.AdminSite) -> None:
    """Register every model of this app with `site`."""
    site.register(Client, ClientAdmin)
    site.register(ApiResource, ApiResourceAdmin)
    site.register(ClientGrant, ClientGrantAdmin)
    site.register(SigningKey, SigningKeyAdmin)
    site.register(RevokedToken, RevokedTokenAdmin)
    site.register((AuthorizationCode, AccessToken, IDToken), CredentialAdmin)
    site.register(RefreshToken, RefreshTokenAdmin)
    site.register(DeviceGrant, DeviceGrantAdmin)
