"""Create, change and delete connections."""

from __future__ import annotations

from typing import Any

from identity.connection_options import database_options, options_problem
from identity.models import Connection, Group, LinkedIdentity, User
from identity.models.connections import known_strategies
from identity.services.failures import Invalid, NotFound
from identity.services.groups import delete_group
from identity.services.relations import delete_relations
from identity.services.saving import validated_save
from identity.services.users import delete_user, unlink_identity
from identity.transactions import lock_rows, unit_of_work

EDITABLE = (
    "display_name",
    "enabled_clients",
    "is_domain_connection",
    "show_as_button",
    "realms",
    "metadata",
    "authentication",
    "connected_accounts",
)
_DELETION_CHUNK = 200


@unit_of_work
def create_connection(*, tenant_id: str, name: str, strategy: str, options: dict[str, Any] | None = None, **fields: Any) -> Connection:
    """Create a connection; raise `Invalid` for an unknown strategy or field, `AlreadyExists` for a taken name."""
    if strategy not in known_strategies():
        raise Invalid({"strategy": [f"One of {', '.join(known_strategies())}."]})
    _refuse_unknown(fields)
    connection = Connection(tenant_id=tenant_id, name=name, strategy=strategy, **fields)
    connection.realms = connection.realms or [name]
    _check_options(connection, options)
    connection.set_options(database_options(options or {}) if connection.is_database else options or {})
    validated_save(connection)
    return connection


@unit_of_work
def update_connection(*, tenant_id: str, connection_id: str, changes: dict[str, Any]) -> Connection:
    """Replace the named fields; `options` replaces the whole object. Name and strategy never change."""
    connection = locked_connection(tenant_id=tenant_id, connection_id=connection_id)
    fields = dict(changes)
    options = fields.pop("options", None)
    _refuse_unknown(fields)
    for field, value in fields.items():
        setattr(connection, field, value)
    saved = list(fields)
    _check_options(connection, options)
    if options is not None:
        connection.set_options(options)
        saved += ["options", "sealed_options"]
    if saved:
        validated_save(connection, fields=saved)
    return connection


def delete_connection(*, tenant_id: str, connection_id: str) -> None:
    """Delete a connection after its users and the identities linked from it, in chunks of one transaction each.

    Stopped half-way, the same call goes on where it stopped. Raises `NotFound` when there is no such connection.
    """
    while not _delete_chunk(tenant_id=tenant_id, connection_id=connection_id):
        pass


@unit_of_work
def _delete_chunk(*, tenant_id: str, connection_id: str) -> bool:
    """Delete up to a chunk of what hangs on the connection; when nothing is left, the connection: True then."""
    connection = locked_connection(tenant_id=tenant_id, connection_id=connection_id)
    if delete_relations(tenant_id=tenant_id, connection=connection, limit=_DELETION_CHUNK):
        return False
    group = Group.objects.of(tenant_id).filter(connection=connection).order_by("pk").first()
    if group is not None:
        delete_group(tenant_id=tenant_id, group_id=group.pk)
        return False
    if _delete_users(tenant_id, connection) or _drop_linked_identities(tenant_id, connection):
        return False
    connection.delete()
    return True


def _delete_users(tenant_id: str, connection: Connection) -> int:
    users = list(User.objects.of(tenant_id).filter(connection=connection).order_by("pk")[:_DELETION_CHUNK])
    # All roots of the chunk are locked at once, in key order, as everywhere.
    lock_rows(User, [user.pk for user in users])
    for user in users:
        delete_user(tenant_id=tenant_id, user_id=user.user_id)
    return len(users)


def _drop_linked_identities(tenant_id: str, connection: Connection) -> int:
    rows = LinkedIdentity.objects.of(tenant_id).filter(connection=connection).select_related("user").order_by("user_id", "pk")
    chunk = list(rows[:_DELETION_CHUNK])
    lock_rows(User, [identity.user_id for identity in chunk])
    for identity in chunk:
        named = {"provider": identity.provider, "identifier": identity.identifier}
        unlink_identity(tenant_id=tenant_id, user_id=identity.user.user_id, restore=False, **named)
    return len(chunk)


def locked_connection(*, tenant_id: str, connection_id: str) -> Connection:
    """Return the connection with its row locked until the transaction ends; raise `NotFound`."""
    connection = Connection.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=connection_id).first()
    if connection is None:
        raise NotFound("The connection does not exist.")
    return connection


def _check_options(connection: Connection, options: dict[str, Any] | None) -> None:
    problem = options_problem(connection.strategy, options, is_database=connection.is_database) if options is not None else None
    if problem:
        raise Invalid({"options": [problem]})
    if connection.is_database and connection.show_as_button is not None:
        raise Invalid({"show_as_button": ["Not for database connections."]})


def _refuse_unknown(fields: dict[str, Any]) -> None:
    unknown = {name: ["Unknown field."] for name in fields if name not in EDITABLE}
    if unknown:
        raise Invalid(unknown)
