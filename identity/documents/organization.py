"""The documents of an organization and of its connections."""

from __future__ import annotations

from functools import partial
from typing import Any

from foundation.shapes import Resource, values
from identity.models import Organization, OrganizationConnection
from identity.shapes import ENABLED_CONNECTION, ORGANIZATION, ORGANIZATION_CONNECTION


def organization_resource(organization: Organization) -> dict[str, Any]:
    """Return the organization as the management interface shows it."""
    return {**values(partial(getattr, organization), ORGANIZATION.recorded), **organization.extras}


def enabled_connection_resource(row: OrganizationConnection) -> dict[str, Any]:
    """Return a connection of an organization as `/organizations/{id}/enabled_connections` shows it."""
    return _connection(row, ENABLED_CONNECTION)


def organization_connection_resource(row: OrganizationConnection) -> dict[str, Any]:
    """Return a connection of an organization as `/organizations/{id}/connections` shows it, with more members."""
    return _connection(row, ORGANIZATION_CONNECTION)


def _connection(row: OrganizationConnection, form: Resource) -> dict[str, Any]:
    connection = {"name": row.connection.name, "strategy": row.connection.strategy}
    return values(partial(getattr, row), form.names, connection=connection)
