"""Request bodies for connections."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field

from foundation.api.fields import Closed, JsonObject, ListOf, Switch, Text
from identity.models.connections import known_strategies

_MOST_METADATA = 10
# The values stored for null in columns that are not nullable.
_CLEARED: dict[str, Any] = {
    "display_name": "",
    "enabled_clients": [],
    "is_domain_connection": False,
    "realms": [],
    "metadata": {},
}


class Activity(Closed):
    active = Switch()


class ConnectionSettings(Closed):
    """Members of both request bodies: to create and to change a connection. Null clears a member."""

    display_name = Text(required=False, allow_null=True, max_length=128)
    options = JsonObject(required=False, allow_null=True)
    enabled_clients = ListOf(required=False, allow_null=True, child=Text(max_length=64))
    is_domain_connection = Switch(required=False, allow_null=True)
    show_as_button = Switch(required=False, allow_null=True)
    realms = ListOf(required=False, allow_null=True, child=Text(max_length=128))
    metadata = JsonObject(required=False, allow_null=True, most=_MOST_METADATA, texts=True)
    authentication = Activity(required=False, allow_null=True)
    connected_accounts = Activity(required=False, allow_null=True)


@extend_schema_field({"type": "string", "enum": list(known_strategies())})
class Strategy(Text):
    """How the users of a connection authenticate."""


class ConnectionToCreate(ConnectionSettings):
    name = Text(max_length=128)
    strategy = Strategy(max_length=40)


class ConnectionToChange(ConnectionSettings):
    """The members that a change of a connection can contain. Its name and strategy never change."""


def cleared(body: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a body, with each null replaced by the value to store."""
    return {name: _CLEARED.get(name) if value is None else value for name, value in body.items()}
