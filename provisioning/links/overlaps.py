"""Warns about event streams of one tenant that write the same users to one SCIM server and overwrite each other's values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from events.models import EventStream
from provisioning.actions.secrets import open_sealed
from provisioning.actions.setups import version_setup
from provisioning.models import ActionVersion
from provisioning.models.actions import SCIM_USER_PROVISIONING
from provisioning.runs.failures import Misconfigured
from provisioning.scim.links import server_of
from provisioning.scim.settings import BASE_URL, CONNECTION_ALLOWLIST, parse_allowlist


@dataclass(frozen=True)
class _Target:
    """The server and the connections of an action. `server` is the digest that links contain, too. An empty set means all connections."""

    server: str
    connections: frozenset[str]


def overlap_warnings(tenant_id: str) -> dict[str, list[str]]:
    """Return warnings by the id of a stream. The warning says that another enabled stream writes the same users to the same server.

    Compares the deployed versions of the actions; versions that cannot be decrypted are ignored, because they cannot run.
    """
    streams = list(EventStream.objects.of(tenant_id).filter(destination_type="action").order_by("pk"))
    targets = _targets(tenant_id, {str(stream.destination.get("action_id")) for stream in streams})
    by_server: dict[str, list[tuple[EventStream, _Target]]] = {}
    for stream in streams:
        target = targets.get(str(stream.destination.get("action_id")))
        if target is not None:
            by_server.setdefault(target.server, []).append((stream, target))
    found: dict[str, list[str]] = {}
    for placed in by_server.values():
        for stream, target in placed:
            if texts := [text for other, its in placed if (text := _warning(stream, target, other, its))]:
                found[stream.pk] = texts
    return found


def _warning(stream: EventStream, target: _Target, other: EventStream, its: _Target) -> str:
    if other.pk == stream.pk or other.status != EventStream.Status.ENABLED:
        return ""
    common = target.connections & its.connections or target.connections or its.connections
    if target.connections and its.connections and not target.connections & its.connections:
        return ""
    named = f"the connections {', '.join(sorted(common))}" if common else "all connections"
    return (
        f"The event stream {other.name or other.pk} writes to the same server for {named}: the two streams overwrite each other's values."
    )


def _targets(tenant_id: str, action_ids: Iterable[str]) -> dict[str, _Target | None]:
    """Return the target of the deployed version of each action; None if its settings cannot be read."""
    versions = ActionVersion.objects.filter(
        action_id__in=[identifier for identifier in action_ids if identifier != "None"],
        action__tenant_id=tenant_id,
        is_deployed=True,
        template=SCIM_USER_PROVISIONING,
    ).select_related("action")
    return {str(version.action_id): _target(version) for version in versions}


def _target(version: ActionVersion) -> _Target | None:
    try:
        setup = version_setup(version)
        # The token is not needed and stays sealed.
        known = {name: setup.sealed[name] for name in (BASE_URL, CONNECTION_ALLOWLIST) if name in setup.sealed}
        secrets = open_sealed(replace(setup, sealed=known))
        return _Target(server_of(secrets[BASE_URL]), parse_allowlist(secrets.get(CONNECTION_ALLOWLIST, "")))
    except (Misconfigured, KeyError, ValueError):
        return None
