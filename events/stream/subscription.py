"""What one stream was admitted with, and what all streams of a process share."""

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
    """The times of a stream, in seconds."""

    heartbeat: float
    lifetime: float
    write_deadline: float
    retry_ms: int


@dataclass(frozen=True, slots=True)
class Subscription:
    """What was admitted: whose log, from where, which events, and until when the token holds."""

    tenant_id: str
    client_id: str
    client_version: int
    jti: str
    expires_at: float
    start: Cursor
    bounds: Bounds
    types: frozenset[str] | None
    not_before: datetime | None
    # How the open stream is called, and where its client is, for whoever looks at it.
    connection_id: str = ""
    address: str = ""
    # A comment right after the opening, if there is something to say.
    notice: bytes = b""
    # For a stream that hangs on no token and no client: asked in a thread once a second.
    still_stands: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class Sources:
    """What all streams of a process share."""

    tails: Tails
    pages: SharedPages
    pace: Pace
