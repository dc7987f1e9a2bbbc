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
    """The intervals and time limits of a stream. `retry_ms` is in milliseconds, all others are in seconds."""

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
    # Tells whether a stream without token and client, such as that of a staff session, may continue. This function is called once a second,
    # in a thread.
    still_stands: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class Sources:
    """Services shared by all streams of a process."""

    tails: Tails
    pages: SharedPages
    pace: Pace
