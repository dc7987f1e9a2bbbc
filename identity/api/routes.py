"""The paths of this app below `/api/v2/`."""

from __future__ import annotations

from identity.api.connections import ConnectionEndpoint
from identity.api.identities import IdentityEndpoint
from identity.api.operations import Route
from identity.api.users import UserEndpoint, UsersByEmailEndpoint

_COLLECTION = {"get": "list", "post": "create"}
_ITEM = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}

ROUTES = (
    Route("users", UserEndpoint, _COLLECTION),
    Route("users/<segment:id>", UserEndpoint, _ITEM),
    Route("users/<segment:id>/identities", IdentityEndpoint, {"post": "create"}),
    Route("users/<segment:id>/identities/<segment:provider>/<segment:user_id>", IdentityEndpoint, {"delete": "destroy"}),
    Route("users-by-email", UsersByEmailEndpoint, {"get": "list"}),
    Route("connections", ConnectionEndpoint, _COLLECTION),
    Route("connections/<segment:id>", ConnectionEndpoint, _ITEM),
)
