"""The routes of the management interface of all apps."""

from __future__ import annotations

from authapi.api.routes import ROUTES as AUTHAPI_ROUTES
from events.api import ROUTES as EVENTS_ROUTES
from foundation.api.operations import Route
from identity.api.routes import ROUTES as IDENTITY_ROUTES
from provisioning.api.routes import ROUTES as PROVISIONING_ROUTES

ROUTES: tuple[Route, ...] = (*IDENTITY_ROUTES, *AUTHAPI_ROUTES, *EVENTS_ROUTES, *PROVISIONING_ROUTES)
# Operations that `config.asgi` routes past Django.
OUTSIDE_DJANGO = frozenset({("GET", "events")})
