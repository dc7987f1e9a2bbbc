"""The document of a connection."""

from __future__ import annotations

from typing import Any

from identity.connection_options import options_with_defaults
from identity.models import Connection
from identity.timestamps import wire_time

_OPTIONAL = ("display_name", "options", "realms", "enabled_clients", "show_as_button", "metadata", "authentication", "connected_accounts")


def connection_document(connection: Connection) -> dict[str, Any]:
    """Return the connection as the management interface and its events show it; sealed options are not in it."""
    document: dict[str, Any] = {"id": connection.id, "name": connection.name, "strategy": connection.strategy}
    for field in _OPTIONAL:
        value = connection.shown_options if field == "options" else getattr(connection, field)
        if value not in (None, "", [], {}):
            document[field] = value
    document["is_domain_connection"] = connection.is_domain_connection
    return document


def connection_resource(connection: Connection) -> dict[str, Any]:
    """Return the document with the defaults and the times that only the management interface shows."""
    document = connection_document(connection)
    options = options_with_defaults(connection.strategy, document.get("options", {}))
    return {
        **document,
        **({"options": options} if options else {}),
        "created_at": wire_time(connection.created_at),
        "updated_at": wire_time(connection.updated_at),
    }
