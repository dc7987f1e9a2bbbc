"""Why a stream ends: the six codes of the error message, and the sentence that goes with each.

The set of codes is closed in public clients, so an expired token or a suspended tenant is a planned close in words.
"""

from __future__ import annotations

from dataclasses import dataclass

from events.log import CursorExpired, LogError, LogHasHole, NoLog


@dataclass(frozen=True, slots=True)
class Reason:
    """One code of the closed set, and words for a person."""

    code: str
    message: str


ROTATION = Reason("connection_timeout", "This connection has reached its planned end; reconnect with the last offset.")
DRAINING = Reason("connection_timeout", "The server is restarting; reconnect with the last offset.")
TOKEN_EXPIRED = Reason("connection_timeout", "The access token has expired; reconnect with a new one.")
TOKEN_REVOKED = Reason("connection_timeout", "The access token or its client is no longer valid.")
TENANT_CLOSED = Reason("connection_timeout", "The tenant is not active.")
CURSOR_EXPIRED = Reason("cursor_expired", "The cursor points to data no longer available in the stream.")
LOG_GONE = Reason("processing_error", "The tenant has no event log.")
LOG_BROKEN = Reason("processing_error", "The event log could not be read.")
FAILED = Reason("processing_error", "The service met an unexpected condition; reconnect with the last offset.")
READ_TIMEOUT = Reason("timeout", "Reading the event log took too long; reconnect with the last offset.")

UNREADABLE: dict[type[LogError], Reason] = {CursorExpired: CURSOR_EXPIRED, NoLog: LOG_GONE, LogHasHole: LOG_BROKEN}
