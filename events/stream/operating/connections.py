"""Lists the open connections of a tenant in all processes, closes single connections, and drops cached events.

The functions that send a call to all processes block for up to one second. So only code that runs in a thread may call them: a view, an
admin page or a command.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from events.stream.operating import calls
from events.stream.operating.calls import Details
from events.stream.stream import Stream

DESCRIBE = "describe"
DISCONNECT = "disconnect"
FORGET = "forget"


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """One open stream, as its process reported it. `types` is None if the stream has no filter."""

    connection_id: str
    tenant_id: str
    client_id: str
    address: str
    process: str
    types: tuple[str, ...] | None
    opened_at: datetime
    written_at: datetime
    blocked_since: datetime | None
    position: int
    head: int
    lag_events: int
    lag_ms: int
    bytes_written: int


@dataclass(frozen=True, slots=True)
class OpenConnections:
    """The tenant's connections, oldest first. Connections of processes that did not answer (`silent_processes`) are missing."""

    connections: list[OpenConnection]
    silent_processes: int


def open_connections(tenant_id: str) -> OpenConnections:
    """Return the tenant's open streams in every process; without Redis, only those in this process."""
    answers = calls.ask(DESCRIBE, tenant_id)
    found = [_connection(told) for answer in answers.given for told in answer]
    return OpenConnections(sorted(found, key=lambda connection: connection.opened_at), answers.silent_processes)


def disconnect(tenant_id: str, connection_id: str) -> bool:
    """Send the last offset on one stream of the tenant, then close this stream. Return whether any process had this stream.

    The client may reconnect with that offset immediately. To exclude the client, revoke its grant or delete the client.
    """
    return any(calls.ask(DISCONNECT, tenant_id, connection=connection_id).given)


def forget_frames(tenant_id: str) -> tuple[int, int]:
    """Make every process drop its cached entries of the tenant's log.

    Return how many processes dropped the entries, and how many did not answer in time.

    Streams continue, and read missing entries from the log. Called after stored events were rewritten.
    """
    answers = calls.ask(FORGET, tenant_id)
    return len(answers.given), answers.silent_processes


def describe_all(streams: Iterable[Stream]) -> list[dict[str, Any]]:
    """Return descriptions of the streams of this process as JSON; times are Unix seconds."""
    passed = time.time() - asyncio.get_running_loop().time()
    return [_described(stream, passed) for stream in streams]


def disconnect_one(streams: Iterable[Stream], call: Details) -> bool:
    """Close the stream whose id the call contains, if this process has the stream. Return whether it has."""
    for stream in streams:
        if stream.subscription.connection_id == call["connection"]:
            stream.disconnect()
            return True
    return False


def _described(stream: Stream, passed: float) -> dict[str, Any]:
    held, lag = stream.subscription, stream.lag()
    return {
        "connection_id": held.connection_id,
        "tenant_id": held.tenant_id,
        "client_id": held.client_id,
        "address": held.address,
        "process": calls.process_name(),
        "types": None if held.types is None else sorted(held.types),
        "opened_at": stream.opened_at + passed,
        "written_at": stream.writer.written_at + passed,
        "blocked_since": stream.writer.writing_since + passed if stream.writer.writing_since else None,
        "position": stream.position,
        "head": lag.head,
        "lag_events": lag.events,
        "lag_ms": lag.ms,
        "bytes_written": stream.writer.bytes_written,
    }


def _connection(told: dict[str, Any]) -> OpenConnection:
    moments = {name: _moment(told[name]) for name in ("opened_at", "written_at")}
    blocked_since = None if told["blocked_since"] is None else _moment(told["blocked_since"])
    types = None if told["types"] is None else tuple(told["types"])
    return OpenConnection(**(told | moments | {"blocked_since": blocked_since, "types": types}))


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
