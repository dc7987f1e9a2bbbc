"""Bodies about connections (`contract/management.md` 4)."""

from __future__ import annotations

from identity.api.fields import Closed, JsonObject, ListOf, Switch, Text

_MOST_METADATA = 10


class Activity(Closed):
    active = Switch()


class ConnectionSettings(Closed):
    """What creating and changing a connection have in common."""

    display_name = Text(required=False, max_length=128)
    options = JsonObject(required=False)
    enabled_clients = ListOf(required=False, child=Text(max_length=64))
    is_domain_connection = Switch(required=False)
    show_as_button = Switch(required=False)
    realms = ListOf(required=False, child=Text(max_length=128))
    metadata = JsonObject(required=False, most=_MOST_METADATA, texts=True)
    authentication = Activity(required=False)
    connected_accounts = Activity(required=False)


class ConnectionToCreate(ConnectionSettings):
    name = Text(max_length=128)
    strategy = Text(max_length=40)


class ConnectionToChange(ConnectionSettings):
    """Name and strategy never change."""
