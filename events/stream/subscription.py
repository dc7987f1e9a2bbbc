"""The checked parameters of one stream, and the services that all streams of a process share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from events.log.cursor import Cursor
from events.log.reading import Bounds
from events.stream.reading.pages import SharedPages
from events.stream.reading.tail import Tails


@dataclass(frozen=True, slots=True)
class Pace:
    """Timing parameters of a stream: in seconds, but `retry_ms` in milliseconds."""

    heartbeat: float
    lifetime: float
    write_deadline: float
    retry_ms: int


@dataclass(frozen=True, slots=True)
class Subscription:
    """The checked parameters of one stream: tenant, start, event types, and expiry of the token."""

    tenant_id: str
    client_id: str
    client_version: int
    jti: str
    expires_at: float
    start: Cursor
    bounds: Bounds
    types: frozenset[str] | None
    not_before: datetime | None
    # The id of the connection and the IP address of the client, for the list of open connections.
    connection_id: str = ""
    address: str = ""
    # A comment that the stream sends directly after the opening; empty if no comment is needed.
    notice: bytes = b""
    # Tells whether a stream without token and client, such as that of a staff session, may continue. A thread calls this function once a
    # second.
    still_stands: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class Sources:
    """Services shared by all streams of a process."""

    tails: Tails
    pages: SharedPages
    pace: Pace
