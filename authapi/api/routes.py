"""The paths of this app below `/api/v2/`."""

from __future__ import annotations

from authapi.api.client_grants import ClientGrantEndpoint, GrantOrganizationEndpoint, OrganizationGrantEndpoint
from authapi.api.clients import ClientEndpoint, ClientSecretEndpoint
from authapi.api.connection_clients import ClientConnectionEndpoint, ConnectionClientEndpoint
from authapi.api.permissions import (
    EffectivePermissionEndpoint,
    EffectivePermissionSourceEndpoint,
    RolePermissionEndpoint,
    UserPermissionEndpoint,
)
from authapi.api.resource_servers import ResourceServerEndpoint
from identity.api.operations import Route

_COLLECTION = {"get": "list", "post": "create"}
_ITEM = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}
_LIST = {"get": "list"}
_RELATION = {"get": "list", "post": "create", "delete": "destroy"}

ROUTES = (
    Route("clients", ClientEndpoint, _COLLECTION),
    Route("clients/<segment:id>", ClientEndpoint, _ITEM),
    Route("clients/<segment:id>/rotate-secret", ClientSecretEndpoint, {"post": "create"}),
    Route("clients/<segment:id>/connections", ClientConnectionEndpoint, _LIST),
    Route("connections/<segment:id>/clients", ConnectionClientEndpoint, {"get": "list", "patch": "partial_update"}),
    Route("resource-servers", ResourceServerEndpoint, _COLLECTION),
    Route("resource-servers/<segment:id>", ResourceServerEndpoint, _ITEM),
    Route("client-grants", ClientGrantEndpoint, _COLLECTION),
    Route("client-grants/<segment:id>", ClientGrantEndpoint, _ITEM),
    Route("client-grants/<segment:id>/organizations", GrantOrganizationEndpoint, _LIST),
    Route("organizations/<segment:id>/client-grants", OrganizationGrantEndpoint, _COLLECTION),
    Route("organizations/<segment:id>/client-grants/<segment:grant_id>", OrganizationGrantEndpoint, {"delete": "destroy"}),
    Route("roles/<segment:id>/permissions", RolePermissionEndpoint, _RELATION),
    Route("users/<segment:id>/permissions", UserPermissionEndpoint, _RELATION),
    Route("users/<segment:id>/effective-permissions", EffectivePermissionEndpoint, _LIST),
    Route("users/<segment:id>/effective-permissions/sources/effective-roles", EffectivePermissionSourceEndpoint, _LIST),
)
