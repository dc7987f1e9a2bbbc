"""Finds the connection of a login: the client names it, the email domain selects it, or the user presses the button of the connection."""

from __future__ import annotations

from authapi.login.connections import client_connections
from authapi.models import Client
from authapi.upstream.strategies import speaker_of
from identity.models import Connection
from identity.options.guides import BRANDS, GUIDES


def buttons(client: Client) -> list[Connection]:
    """Return the connections for which the login page of this client shows buttons, in order."""
    return [connection for connection in _upstream(client) if _is_button(connection)]


def label_of(connection: Connection) -> str:
    """Return the name that the button of a connection shows after `Continue with`."""
    if connection.display_name:
        return connection.display_name
    guide = GUIDES.get(connection.strategy) if connection.strategy in BRANDS else None
    return guide.label if guide is not None else connection.name


def named_connection(client: Client, name: str) -> Connection | None:
    """Return the upstream connection with this name; None if the client may not use it."""
    return next((connection for connection in _upstream(client) if connection.name == name), None)


def connection_for_email(client: Client, email: str) -> Connection | None:
    """Return the connection for the domain of an email address; None if the client may not use it."""
    _, separator, domain = email.strip().rpartition("@")
    if not separator or not domain:
        return None
    return next((connection for connection in _upstream(client) if domain.lower() in _domains(connection)), None)


def _upstream(client: Client) -> list[Connection]:
    return [connection for connection in client_connections(client) if speaker_of(connection) is not None]


def _is_button(connection: Connection) -> bool:
    # Users choose a social provider by its button. An enterprise connection has a button only if its settings say so; otherwise the domain
    # of the email address selects it.
    return bool(connection.show_as_button) or (connection.is_social and connection.show_as_button is None)


def _domains(connection: Connection) -> set[str]:
    aliases = connection.options.get("domain_aliases")
    return {alias.lower() for alias in aliases if isinstance(alias, str)} if isinstance(aliases, list) else set()
