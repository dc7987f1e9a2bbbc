"""The documents of an organization and of its connections."""

from __future__ import annotations

from typing import Any

from identity.models import Organization, OrganizationConnection

_FLAGS = ("assign_membership_on_login", "show_as_button", "is_signup_enabled")
_TEXTS = ("organization_connection_name", "organization_access_level", "organization_member_access_level")


def organization_resource(organization: Organization) -> dict[str, Any]:
    """Return the organization as the management interface shows it."""
    fields = {name: getattr(organization, name) for name in ("display_name", "branding", "metadata")}
    return {
        "id": organization.pk,
        "name": organization.name,
        **{name: value for name, value in fields.items() if value},
        **organization.extras,
    }


def enabled_connection_resource(row: OrganizationConnection) -> dict[str, Any]:
    """Return a connection of an organization in the older of its two forms."""
    connection = {"name": row.connection.name, "strategy": row.connection.strategy}
    return {"connection_id": row.connection_id, **{name: getattr(row, name) for name in _FLAGS}, "connection": connection}


def organization_connection_resource(row: OrganizationConnection) -> dict[str, Any]:
    """Return it in the newer form."""
    texts = {name: getattr(row, name) for name in _TEXTS if getattr(row, name)}
    return {**enabled_connection_resource(row), "is_enabled": row.is_enabled, **texts}
