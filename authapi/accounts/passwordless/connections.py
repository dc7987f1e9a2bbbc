"""Finds the passwordless connections of a client, and the one connection that is named in a request."""

from __future__ import annotations

from collections.abc import Iterable

from authapi.accounts.passwordless.addresses import Channel, channel_of
from authapi.login.connections import client_connections
from authapi.models import Client
from identity.models import Connection


def passwordless_among(connections: Iterable[Connection]) -> list[Connection]:
    """Return the connections whose users log in with a code or a link, in the given order."""
    return [connection for connection in connections if channel_of(connection) is not None]


def named_passwordless(client: Client, name: str) -> Connection | None:
    """Return the client's enabled connection with this name, realm or strategy; None if no connection matches.

    Client libraries send `email` and `sms`, not the name of the connection.
    """
    enabled = passwordless_among(client_connections(client))
    by_name = next((one for one in enabled if name == one.name), None) or next((one for one in enabled if name in one.realms), None)
    return by_name or next((one for one in enabled if name == one.strategy), None)


def tenant_passwordless(tenant_id: str, name: str) -> Connection | None:
    """Return the tenant's oldest connection with this name, otherwise with this strategy. This function is for requests without a
    client."""
    usable = Connection.objects.of(tenant_id).filter(strategy__in=list(Channel), deletion_started_at__isnull=True)
    found = list(usable.order_by("created_at", "pk"))
    return next((one for one in found if one.name == name), None) or next((one for one in found if one.strategy == name), None)
