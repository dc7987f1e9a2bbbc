"""The document of a connection."""

from __future__ import annotations

from typing import Any

from foundation.timestamps import wire_time
from identity.models import Connection
from identity.options.connection_options import options_with_defaults
from identity.options.discovery import with_endpoints

_OPTIONAL = ("display_name", "options", "realms", "enabled_clients", "show_as_button", "metadata", "authentication", "connected_accounts")


def connection_document(connection: Connection) -> dict[str, Any]:
    """Return the connection as the management interface and its events show it; sealed options are not in it."""
    document: dict[str, Any] = {"id": connection.id, "name": connection.name, "strategy": connection.strategy}
    for field in _OPTIONAL:
        value = with_endpoints(connection.shown_options) if field == "options" else getattr(connection, field)
        if value not in (None, "", [], {}):
            document[field] = value
    document["is_domain_connection"] = connection.is_domain_connection
    return document


def connection_resource(connection: Connection) -> dict[str, Any]:
    """Return the document with what only the management interface shows: defaults, times, and the clients where there are none."""
    document = connection_document(connection)
    options = options_with_defaults(connection.strategy, document.get("options", {}))
    return {
        "enabled_clients": [],
        **document,
        **({"options": options} if options else {}),
        "created_at": wire_time(connection.created_at),
        "updated_at": wire_time(connection.updated_at),
    }
