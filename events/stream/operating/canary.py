"""Canaries: test events that a client requests, sent to its own open streams to measure latency.

A canary is sent like the hint of a real event: every process receives the canary, and a stream writes it after all earlier events.
No log contains a canary, so a canary has no position. Its frame contains the present offset of the stream, and no `id`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.conf import settings

from events.log.envelope import TEST_PURPOSE, encode_envelope, event_message
from events.record.catalogue import EVENT_TYPES
from events.record.samples import sample_data
from events.stream.operating import calls
from events.stream.operating.calls import Details
from foundation.ids import new_event_id
from foundation.timestamps import wire_time

CANARY = "canary"
# The default type of a canary, used on each stream whose filter accepts this type.
DEFAULT_TYPE = "user.updated"


@dataclass(frozen=True, slots=True)
class Canary:
    """A canary that the streams must write. If `type` is None, each stream uses a type that its filter accepts. Times are Unix seconds.

    `written` maps the id of each connection of this process to the time at which its stream has written the canary.
    """

    id: str
    tenant_id: str
    client_id: str
    source: str
    type: str | None
    requested_at: float
    heard_at: float
    written: dict[str, float] = field(default_factory=dict, compare=False)

    def type_for(self, wanted: frozenset[str] | None) -> str | None:
        """Return the type for a stream with this filter, or None when the filter excludes the requested type."""
        if self.type is not None:
            return self.type if wanted is None or self.type in wanted else None
        if wanted is None or DEFAULT_TYPE in wanted:
            return DEFAULT_TYPE
        return next((name for name in EVENT_TYPES if name in wanted), None)

    def frame(self, event_type: str, *, offset: str, stream_id: str, now: float) -> bytes:
        """Return the frame of a canary that is written at `now`. The frame has no `id`, so that the position of the client does not
        change."""
        requested_at = _moment(self.requested_at)
        data = sample_data(event_type, tenant_id=self.tenant_id, time=wire_time(requested_at))
        data["canary"] = {
            "requested_at": wire_time(requested_at),
            "heard_at": wire_time(_moment(self.heard_at)),
            "written_at": wire_time(_moment(now)),
            "elapsed_ms": max(0.0, round((now - self.requested_at) * 1000, 3)),
        }
        envelope = encode_envelope(
            event_type=event_type,
            source=self.source,
            event_id=self.id,
            time=requested_at,
            data=data,
            tenant_id=self.tenant_id,
            stream_id=stream_id,
            max_bytes=settings.EVENT_MAX_BYTES,
            prefix=settings.EVENT_ATTRIBUTE_PREFIX,
            purpose=TEST_PURPOSE,
        )
        return b"event: %b\ndata: %b\n\n" % (event_type.encode(), event_message(event_type, offset, envelope))


class WaitingCanary(NamedTuple):
    """A canary, its type on one stream, and the position after which it is written."""

    behind: int
    event_type: str
    canary: Canary

    def frame(self, *, offset: str, stream_id: str, now: float) -> bytes:
        """Return the frame of the canary if it is written at `now`."""
        return self.canary.frame(self.event_type, offset=offset, stream_id=stream_id, now=now)


def send_canary(*, tenant_id: str, client_id: str, source: str, event_type: str | None) -> tuple[str, datetime]:
    """Send a canary to the open streams of this client in every process; return its id and the time when it was sent."""
    event_id, requested_at = new_event_id(), time.time()
    calls.tell(CANARY, tenant_id, event=event_id, client=client_id, source=source, type=event_type, requested_at=requested_at)
    return event_id, _moment(requested_at)


def canary_of(call: Details) -> Canary:
    """Return the canary that a call describes."""
    names: dict[str, Any] = {name: call[name] for name in ("source", "type", "requested_at")}
    return Canary(id=call["event"], tenant_id=call["tenant"], client_id=call["client"], heard_at=time.time(), **names)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
