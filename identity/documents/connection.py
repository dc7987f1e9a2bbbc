"""The document of a connection."""

from __future__ import annotations

from functools import partial
from typing import Any

from foundation.shapes import values
from foundation.timestamps import wire_time
from identity.models import Connection
from identity.options.connection_options import options_with_defaults
from identity.options.discovery import with_endpoints
from identity.shapes import CONNECTION


def connection_document(connection: Connection) -> dict[str, Any]:
    """Return the connection as the management interface and its events show it, without sealed options."""
    options = with_endpoints(connection.shown_options)
    return values(partial(getattr, connection), CONNECTION.documented, options=options)


def connection_resource(connection: Connection) -> dict[str, Any]:
    """Return the document with the members that only the management interface shows.

    These members are default options, times, and, for a connection without clients, an empty list of clients.
    """
    document = connection_document(connection)
    options = options_with_defaults(connection.strategy, document.get("options", {}))
    return {
        "enabled_clients": [],
        **document,
        **({"options": options} if options else {}),
        "created_at": wire_time(connection.created_at),
        "updated_at": wire_time(connection.updated_at),
    }
