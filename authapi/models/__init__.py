"""The rows of the authentication interface; each module holds one noun."""

from authapi.models.clients import Client
from authapi.models.credentials import AccessToken, AuthorizationCode, DeviceGrant, IDToken, RefreshToken
from authapi.models.keys import RevokedToken, SigningKey
from authapi.models.permissions import OrganizationClientGrant, Permission, RolePermission, UserPermission
from authapi.models.resources import ApiResource, ClientGrant

__all__ = [
    "AccessToken",
    "ApiResource",
    "AuthorizationCode",
    "Client",
    "ClientGrant",
    "DeviceGrant",
    "IDToken",
    "OrganizationClientGrant",
    "Permission",
    "RefreshToken",
    "RevokedToken",
    "RolePermission",
    "SigningKey",
    "UserPermission",
]
