"""The connections through which users log in to a client."""

from __future__ import annotations

from django.conf import settings
from django.db.models import Q

from authapi.models import Client
from authapi.tenant_settings import sign_in_settings
from identity.models import Connection


def client_connections(client: Client) -> list[Connection]:
    """Return the connections that are enabled for the client, oldest first, without connections that are being deleted.

    No administrator enables connections for a client that registered itself. So this client also gets the connections that are enabled for
    every client (`is_domain_connection`). The account page uses the connections that the tenant has set for this page. If the tenant has
    set none, the account page uses every connection that is enabled for at least one application (docs/adr/0118).
    """
    if client.is_account_page:
        return _connections_of_account(client)
    is_enabled = Q(enabled_clients__contains=[client.client_id])
    if client.is_self_registered:
        is_enabled |= Q(is_domain_connection=True)
    enabled = Connection.objects.of(client.tenant_id).filter(is_enabled)
    return list(enabled.filter(deletion_started_at__isnull=True).order_by("created_at", "pk"))


def _connections_of_account(client: Client) -> list[Connection]:
    rows = Connection.objects.of(client.tenant_id).filter(deletion_started_at__isnull=True)
    names = sign_in_settings(client.tenant_id).account_page.connections
    found = rows.filter(name__in=names) if names else rows.exclude(Q(enabled_clients=[]) & Q(is_domain_connection=False))
    return list(found.order_by("created_at", "pk"))


def database_connections(client: Client) -> list[Connection]:
    """Return the connections with passwords that are enabled for the client, oldest first."""
    return [connection for connection in client_connections(client) if takes_passwords(connection)]


def default_directory(tenant_id: str) -> Connection | None:
    """Return the tenant's default connection for requests without a connection.

    None if the tenant has no default connection, or if this connection does not accept passwords.
    """
    name = sign_in_settings(tenant_id).default_directory
    return named_database(tenant_id, name) if name else None


def named_database(tenant_id: str, name: str) -> Connection | None:
    """Return the connection that accepts passwords and has this name or realm. None if there is no such connection."""
    found = Connection.objects.of(tenant_id).filter(strategy=settings.DATABASE_STRATEGY, deletion_started_at__isnull=True)
    connection = found.filter(name=name).first() or found.filter(realms__contains=[name]).order_by("created_at", "pk").first()
    return connection if connection is not None and takes_passwords(connection) else None


def takes_passwords(connection: Connection) -> bool:
    """Tell whether users log in to this connection with a password."""
    methods = connection.options.get("authentication_methods")
    password = methods.get("password") if isinstance(methods, dict) else None
    return connection.is_database and not (isinstance(password, dict) and password.get("enabled") is False)


def takes_sign_ups(connection: Connection) -> bool:
    """Tell whether users may create their own account at this connection."""
    return takes_passwords(connection) and not connection.options.get("disable_signup")
