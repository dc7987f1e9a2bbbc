"""Create, change and delete connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foundation.database.transactions import lock_rows, unit_of_work
from foundation.hooks import changes_together
from foundation.json_values import json_problem
from identity.models import Connection, Group, GroupMember, Job, LinkedIdentity, OrganizationConnection, OrganizationMember, User
from identity.models.connections import known_strategies
from identity.options.connection_options import database_options, options_problem
from identity.options.discovery import METADATA_OPTION, STRATEGIES, discovery_address, without_endpoints
from identity.options.judges import judged_problem
from identity.options.sealed_options import OptionsRefused
from identity.services.deletions import deletion_of, refuse_if_being_deleted
from identity.services.failures import AlreadyExists, Invalid, NotFound
from identity.services.groups import empty_groups
from identity.services.relations import delete_relations, delete_users
from identity.services.saving import validated_save
from identity.services.tenant_life import refuse_in_closing_tenant
from identity.services.users import unlink_identity

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


@unit_of_work
def create_connection(
    *,
    tenant_id: str,
    name: str,
    strategy: str,
    options: dict[str, Any] | None = None,
    discovered: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Connection:
    """Create a connection. Raises `Invalid` for an unknown strategy or field, and `AlreadyExists` for a taken name.

    `discovered` is the metadata of the connection's provider (`identity.options.discovery`).
    """
    if strategy not in known_strategies():
        raise Invalid({"strategy": [f"One of {', '.join(known_strategies())}."]})
    _refuse_unknown(fields)
    _check_switches(fields, stored=None)
    refuse_in_closing_tenant(tenant_id)
    connection = Connection(tenant_id=tenant_id, name=name, strategy=strategy, **fields)
    connection.realms = connection.realms or [name]
    _check_options(connection, options)
    _set_options(connection, database_options(options or {}) if connection.is_database else options or {})
    _keep_discovered(connection, discovered)
    _save(connection)
    return connection


@unit_of_work
def update_connection(
    *, tenant_id: str, connection_id: str, changes: dict[str, Any], discovered: Mapping[str, Any] | None = None
) -> Connection:
    """Replace the named fields. Name and strategy never change.

    `options` replaces the whole object, but keeps sealed members that the new value does not name; None clears all members. `discovered` is
    the metadata of the provider in the new options. Raises `Invalid`, also if kept credentials would be sent to a changed URL.
    """
    connection = locked_connection(tenant_id=tenant_id, connection_id=connection_id)
    fields = dict(changes)
    has_options, options = "options" in fields, fields.pop("options", None)
    _refuse_unknown(fields)
    _check_switches(fields, stored=connection)
    for field, value in fields.items():
        setattr(connection, field, value)
    saved = list(fields)
    _check_options(connection, (options or {}) if has_options else None)
    if has_options:
        _replace_options(connection, options, discovered)
        saved += ["options", "sealed_options"]
    if saved:
        validated_save(connection, fields=saved)
    return connection


def delete_connection(*, tenant_id: str, connection_id: str) -> Job | None:
    """Delete a connection. First deletes what belongs to the connection: its relations to organizations, its groups, its users and its
    linked identities.

    For a large connection, returns the job that continues. Raises `NotFound`.
    """
    return CONNECTION_DELETION.start(tenant_id=tenant_id, key=connection_id)


def _empty(connection: Connection, limit: int) -> int:
    here = connection.tenant_id
    return (
        delete_relations(tenant_id=here, connection=connection, limit=limit)
        or empty_groups(Group.objects.of(here).filter(connection=connection), limit)
        or delete_users(User.objects.of(here).filter(connection=connection), limit)
        or _drop_linked_identities(connection, limit)
    )


def _drop_linked_identities(connection: Connection, limit: int) -> int:
    rows = LinkedIdentity.objects.of(connection.tenant_id).filter(connection=connection).select_related("user").order_by("user_id", "pk")
    chunk = list(rows[:limit])
    lock_rows(User, [identity.user_id for identity in chunk])
    with changes_together():
        for identity in chunk:
            named = {"provider": identity.provider, "identifier": identity.identifier}
            unlink_identity(tenant_id=connection.tenant_id, user_id=identity.user.user_id, restore=False, **named)
    return len(chunk)


def _count(connection: Connection) -> dict[str, int]:
    here = connection.tenant_id
    return {
        "users": User.objects.of(here).filter(connection=connection).count(),
        "memberships of its users in organizations": OrganizationMember.objects.of(here).filter(user__connection=connection).count(),
        "memberships of its users in groups": GroupMember.objects.of(here).filter(user__connection=connection).count(),
        "identities linked to users of other connections": _linked_elsewhere(connection).count(),
        "groups": Group.objects.of(here).filter(connection=connection).count(),
        "members of its groups": GroupMember.objects.of(here).filter(group__connection=connection).count(),
        "organizations that use the connection": OrganizationConnection.objects.of(here).filter(connection=connection).count(),
    }


def _linked_elsewhere(connection: Connection) -> Any:
    return LinkedIdentity.objects.of(connection.tenant_id).filter(connection=connection).exclude(user__connection=connection)


CONNECTION_DELETION = deletion_of(
    Connection, Job.Type.CONNECTION_DELETION, missing="The connection does not exist.", empty=_empty, count=_count
)


def locked_connection(*, tenant_id: str, connection_id: str) -> Connection:
    """Return the connection with its row locked until the transaction ends. Raises `NotFound` or `BeingDeleted`."""
    connection = Connection.objects.of(tenant_id).select_for_update(no_key=True).filter(pk=connection_id).first()
    if connection is None:
        raise NotFound("The connection does not exist.")
    refuse_if_being_deleted(connection)
    return connection


def _check_switches(fields: dict[str, Any], *, stored: Connection | None) -> None:
    """Refuse new members other than `active` in `authentication` and `connected_accounts`: responses would show them, even if they are
    secrets."""
    for name in ("authentication", "connected_accounts"):
        value, known = fields.get(name), getattr(stored, name, None)
        if value is None or value == known:
            continue
        if not (isinstance(value, dict) and isinstance(value.get("active"), bool) and _has_only_stored_others(value, known)):
            raise Invalid({name: ["Expected an object with active, which is true or false."]})


def _has_only_stored_others(value: dict[str, Any], known: Any) -> bool:
    kept = known if isinstance(known, dict) else {}
    return all(name == "active" or (name in kept and kept[name] == member) for name, member in value.items())


def _check_options(connection: Connection, options: dict[str, Any] | None) -> None:
    problem = _options_problem(connection, options) if options is not None else None
    if problem:
        raise Invalid({"options": [problem]})
    if connection.is_database and connection.show_as_button is not None:
        raise Invalid({"show_as_button": ["Not for database connections."]})


def _options_problem(connection: Connection, options: dict[str, Any]) -> str | None:
    known = options_problem(connection.strategy, options, is_database=connection.is_database)
    return known or judged_problem(connection.strategy, options)


def _set_options(connection: Connection, options: dict[str, Any] | None) -> None:
    if options is None:
        connection.clear_options()
        return
    # Check the options before the secrets are split off, because the check at the save does not see sealed values.
    problem = json_problem(options)
    if problem:
        raise Invalid({"options": [problem]})
    try:
        connection.set_options(options)
    except OptionsRefused as refusal:
        raise Invalid({"options": [str(refusal)]}) from refusal


def _replace_options(connection: Connection, options: dict[str, Any] | None, discovered: Mapping[str, Any] | None) -> None:
    """Replace the options. Endpoints from metadata that the service discovered earlier are not stored as options of the caller, even if the
    caller sends them back."""
    known, address = connection.options.get(METADATA_OPTION), discovery_address(connection.strategy, connection.options)
    if options is None or known is None or connection.strategy not in STRATEGIES:
        _set_options(connection, options)
    else:
        _set_options(connection, {METADATA_OPTION: known, **without_endpoints(options, stored=connection.options)})
        if METADATA_OPTION not in options and discovery_address(connection.strategy, connection.options) != address:
            # The stored metadata belongs to the former provider.
            connection.options.pop(METADATA_OPTION, None)
    _keep_discovered(connection, discovered)


def _keep_discovered(connection: Connection, discovered: Mapping[str, Any] | None) -> None:
    """Store the metadata of the provider. Because the service itself found the metadata, a new URL in it does not require that the caller
    sends the credentials again."""
    if discovered:
        connection.options = {**connection.options, METADATA_OPTION: dict(discovered)}


def _save(connection: Connection) -> None:
    """Save a new connection. If the name is taken, raise `AlreadyExists` with the text that client programs compare."""
    try:
        validated_save(connection)
    except AlreadyExists as error:
        raise AlreadyExists("A connection with the same name already exists") from error


def _refuse_unknown(fields: dict[str, Any]) -> None:
    unknown = {name: ["Unknown field."] for name in fields if name not in EDITABLE}
    if unknown:
        raise Invalid(unknown)


@unit_of_work
def change_enabled_clients(*, tenant_id: str, connection_id: str, added: Sequence[str], removed: Sequence[str]) -> Connection:
    """Add and remove client ids. The caller has checked the ids. Raises `NotFound`.

    Skips ids in `added` that the connection already has, and ids in `removed` that the connection does not have.
    """
    connection = locked_connection(tenant_id=tenant_id, connection_id=connection_id)
    kept = [client_id for client_id in connection.enabled_clients if client_id not in removed]
    clients = kept + [client_id for client_id in dict.fromkeys(added) if client_id not in kept]
    if clients == connection.enabled_clients:
        return connection
    return update_connection(tenant_id=tenant_id, connection_id=connection_id, changes={"enabled_clients": clients})


def remove_enabled_clients(*, tenant_id: str, connection_id: str, client_ids: Sequence[str]) -> Connection:
    """Remove client ids, such as the id of a deleted client. Raises `NotFound` or `BeingDeleted`."""
    return change_enabled_clients(tenant_id=tenant_id, connection_id=connection_id, added=(), removed=client_ids)
