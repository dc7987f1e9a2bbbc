"""The reasons for which a stream ends: each has one of the six codes of the error message, and a text.

Public client libraries know only these codes. So the end for an expired token or a suspended tenant has the code of a planned end, and
differs only in its text.
"""

from __future__ import annotations

from dataclasses import dataclass

from events.log.reading import CursorExpired, LogError, LogHasHole, NoLog


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason: its label in the metrics, one of the six codes, and a text for people."""

    name: str
    code: str
    message: str


ROTATION = Reason("rotation", "connection_timeout", "This connection has reached its planned end; reconnect with the last offset.")
DRAINING = Reason("drain", "connection_timeout", "The server is restarting; reconnect with the last offset.")
TOKEN_EXPIRED = Reason("expired", "connection_timeout", "The access token has expired; reconnect with a new one.")
TOKEN_REVOKED = Reason("revoked", "connection_timeout", "The access token or its client is no longer valid.")
TENANT_STOPPED = Reason("stopped", "connection_timeout", "The tenant moves to another installation; reconnect with the last offset.")
TENANT_CLOSED = Reason("tenant", "connection_timeout", "The tenant is not active.")
SIGNED_OUT = Reason("staff", "connection_timeout", "The session has ended, or shows another tenant now.")
DISCONNECTED = Reason("operator", "connection_timeout", "An operator has closed this connection; reconnect with the last offset.")
CURSOR_EXPIRED = Reason("cursor", "cursor_expired", "The cursor points to data no longer available in the stream.")
LOG_GONE = Reason("log", "processing_error", "The tenant has no event log.")
LOG_BROKEN = Reason("log", "processing_error", "The event log could not be read.")
FAILED = Reason("error", "processing_error", "The service met an unexpected condition; reconnect with the last offset.")
READ_TIMEOUT = Reason("timeout", "timeout", "Reading the event log took too long; reconnect with the last offset.")

UNREADABLE: dict[type[LogError], Reason] = {CursorExpired: CURSOR_EXPIRED, NoLog: LOG_GONE, LogHasHole: LOG_BROKEN}
