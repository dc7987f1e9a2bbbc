"""Forms of a trace context: the `traceparent` header of W3C Trace Context, and the 24 bytes that are stored with an event. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STORED_BYTES = 24
# W3C Trace Context, 3.2.2. Later versions may add fields after the flags; version ff is invalid.
_TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_LONGEST_HEADER = 256


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The ids of a trace and of one of its spans."""

    trace_id: int
    span_id: int

    def stored(self) -> bytes:
        """Return the ids as 24 bytes."""
        return self.trace_id.to_bytes(16) + self.span_id.to_bytes(8)


def read_stored(stored: bytes) -> TraceContext | None:
    """Return the context of 24 stored bytes; None for anything else."""
    if len(stored) != _STORED_BYTES:
        return None
    return _valid(int.from_bytes(stored[:16]), int.from_bytes(stored[16:]))


def read_header(text: str) -> TraceContext | None:
    """Return the context of a `traceparent` header without its flags; None if the header is invalid.

    The flags say whether the caller records its trace. This service decides about its own spans, so it ignores the flags.
    """
    found = _TRACEPARENT.fullmatch(text) if len(text) <= _LONGEST_HEADER else None
    # Version 00 has exactly four fields.
    if found is None or (found[1] == "00" and found[5]):
        return None
    return _valid(int(found[2], 16), int(found[3], 16))


def _valid(trace_id: int, span_id: int) -> TraceContext | None:
    return TraceContext(trace_id, span_id) if trace_id and span_id else None
