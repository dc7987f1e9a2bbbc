"""Admin pages of this app, for our own site. Secrets and keys are never shown; codes and tokens are never searched."""

from __future__ import annotations

from django.contrib import admin

from authapi.admin.clients import ClientAdmin
from authapi.admin.credentials import CredentialAdmin, DeviceGrantAdmin, RefreshTokenAdmin
from authapi.admin.keys import RevokedTokenAdmin, SigningKeyAdmin
from authapi.admin.permissions import OrganizationClientGrantAdmin, PermissionAdmin, RolePermissionAdmin, UserPermissionAdmin
from authapi.admin.resources import ApiResourceAdmin, ClientGrantAdmin
from authapi.models import (
    AccessToken,
    ApiResource,
    AuthorizationCode,
    Client,
    ClientGrant,
    DeviceGrant,
    IDToken,
    OrganizationClientGrant,
    Permission,
    RefreshToken,
    RevokedToken,
    RolePermission,
    SigningKey,
    UserPermission,
)


def register(site: admin.AdminSite) -> None:
    """Register every model of this app with `site`."""
    site.register(Client, ClientAdmin)
    site.register(ApiResource, ApiResourceAdmin)
    site.register(ClientGrant, ClientGrantAdmin)
    site.register(Permission, PermissionAdmin)
    site.register(RolePermission, RolePermissionAdmin)
    site.register(UserPermission, UserPermissionAdmin)
    site.register(OrganizationClientGrant, OrganizationClientGrantAdmin)
    site.register(SigningKey, SigningKeyAdmin)
    site.register(RevokedToken, RevokedTokenAdmin)
    site.register((AuthorizationCode, AccessToken, IDToken), CredentialAdmin)
    site.register(RefreshToken, RefreshTokenAdmin)
    site.register(DeviceGrant, DeviceGrantAdmin)
