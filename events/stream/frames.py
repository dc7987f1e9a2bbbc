"""Builds the frames of a stream in the WHATWG event stream format. A frame contains the stored bytes of its event unchanged. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from events.log.cursor import CursorSealer
from events.log.envelope import error_message, event_message, offset_only_message
from events.stream.lag import Lag

if TYPE_CHECKING:
    # This import is only for the type checker: at run time, this pure module must not load the module that queries the database.
    from events.log.reading import LoggedEvent


class Frame(NamedTuple):
    """One event, as the service sends it on every stream of the tenant."""

    position: int
    recorded_at: datetime
    type: str
    data: bytes


def encode_frames(events: Sequence[LoggedEvent], *, epoch: int, sealer: CursorSealer) -> list[Frame]:
    """Encode each event once, with `event`, `id` and `data`. The id is the cursor directly after the event."""
    return [_event_frame(event, sealer.seal_at(epoch, event.position)) for event in events]


def opening(retry_ms: int, offset: str) -> bytes:
    """Return the first bytes of every stream, which give a client a cursor before its first event."""
    return b":connected\n\nretry: %d\n\n" % retry_ms + offset_only(offset)


def offset_only(offset: str) -> bytes:
    """Return the message `offset-only`, which only advances the offset of the client."""
    return b"event: offset-only\nid: %b\ndata: %b\n\n" % (offset.encode(), offset_only_message(offset))


def heartbeat(offset: str, lag: Lag) -> bytes:
    """Return a heartbeat: a comment that keeps the connection open at proxies, a comment with head and lag, and `offset-only`."""
    return b": heartbeat\n:head=%d lag_events=%d lag_ms=%d\n\n" % (lag.head, lag.events, lag.ms) + offset_only(offset)


def comment(text: str) -> bytes:
    """Return a comment as a separate block, which every client ignores."""
    return b":%b\n\n" % text.encode()


def error(code: str, message: str, offset: str | None) -> bytes:
    """Return the message that ends a stream. The message has no `id`, because an error does not advance the offset."""
    return b"event: error\ndata: %b\n\n" % error_message(code, message, offset)


def _event_frame(event: LoggedEvent, offset: str) -> Frame:
    message = event_message(event.type, offset, event.body)
    data = b"event: %b\nid: %b\ndata: %b\n\n" % (event.type.encode(), offset.encode(), message)
    return Frame(event.position, event.recorded_at, event.type, data)
