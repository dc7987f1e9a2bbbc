"""Which clients may use a connection: ids on the connection, changed one by one without losing each other's change."""

from __future__ import annotations

from collections.abc import Sequence

from foundation.database.transactions import unit_of_work
from identity.models import Connection
from identity.services.connections import locked_connection, update_connection


@unit_of_work
def change_enabled_clients(*, tenant_id: str, connection_id: str, added: Sequence[str], removed: Sequence[str]) -> Connection:
    """Add and remove client ids; what is so already stays. The caller has looked the ids up. Raises `NotFound`."""
    connection = locked_connection(tenant_id=tenant_id, connection_id=connection_id)
    kept = [client_id for client_id in connection.enabled_clients if client_id not in removed]
    clients = kept + [client_id for client_id in dict.fromkeys(added) if client_id not in kept]
    if clients == connection.enabled_clients:
        return connection
    return update_connection(tenant_id=tenant_id, connection_id=connection_id, changes={"enabled_clients": clients})


def remove_enabled_clients(*, tenant_id: str, connection_id: str, client_ids: Sequence[str]) -> Connection:
    """Remove client ids, such as those of a client that is deleted. Raises `NotFound` or `BeingDeleted`."""
    return change_enabled_clients(tenant_id=tenant_id, connection_id=connection_id, added=(), removed=client_ids)
