"""Builds the event envelope and the message around it, as JSON bytes. Streams send these bytes without parsing them. Pure."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import orjson

from foundation.ids import STREAM_ID_PATTERN
from foundation.timestamps import wire_time

SPEC_VERSION = "1.0"
TEST_PURPOSE = "test"
# The maximum length of a sealed cursor. The check of the size of a message assumes an offset of this length.
MAX_OFFSET_LENGTH = 64

_PREFIX_PATTERN = re.compile(r"[a-z][a-z0-9]{0,15}")
_STREAM_ID_LENGTH = 26
_TAIL = b'"}'


class EventTooLarge(ValueError):
    """The message of this change would exceed the maximum size that the documentation promises to subscribers."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"{self.__doc__} It has {size} bytes, the limit is {limit}.")
        self.size = size
        self.limit = limit


def event_source(namespace: str, tenant_id: str, domain: str) -> str:
    """Return `urn:<namespace>:<tenant>.<domain>` (spec, "Event envelope", `source`)."""
    return f"urn:{namespace}:{tenant_id}.{domain}"


def encode_envelope(
    *,
    event_type: str,
    source: str,
    event_id: str,
    time: datetime,
    data: dict[str, Any],
    tenant_id: str,
    stream_id: str,
    max_bytes: int,
    prefix: str = "x0",
    purpose: str | None = None,
) -> bytes:
    """Return the envelope as stored and delivered bytes, with fields in a fixed order.

    The stream id is the last field, so the copy for another stream differs only in its last bytes. Raises `EventTooLarge` when
    the message around the envelope, with its offset, would exceed `max_bytes`; `ValueError` on a malformed prefix or stream id.
    """
    if _PREFIX_PATTERN.fullmatch(prefix) is None:
        raise ValueError("The attribute prefix is 1 to 16 lower-case letters or digits and starts with a letter.")
    _require_stream_id(stream_id)
    envelope: dict[str, Any] = {
        "specversion": SPEC_VERSION,
        "type": event_type,
        "source": source,
        "id": event_id,
        "time": wire_time(time),
        "data": data,
        f"{prefix}tenant": tenant_id,
    }
    if purpose is not None:
        envelope[f"{prefix}purpose"] = purpose
    envelope[f"{prefix}stream"] = stream_id
    body = encode_stored(envelope)
    size = message_size(event_type, body)
    if size > max_bytes:
        raise EventTooLarge(size, max_bytes)
    return body


def encode_stored(envelope: dict[str, Any]) -> bytes:
    """Encode an envelope that was parsed from stored bytes. Its members keep their order."""
    return escape_terminator(_encoded(envelope))


def escape_terminator(encoded: bytes) -> bytes:
    """Escape `[DONE]` inside JSON text: a published client library would end the stream at an event whose data contains this text."""
    # In JSON, the number of backslashes before a bracket is even, so the inserted escape is valid.
    return encoded.replace(b"[DONE]", rb"\u005bDONE]")


def with_stream(body: bytes, stream_id: str) -> bytes:
    """Return the stored envelope with the id of another stream; all other bytes are unchanged."""
    _require_stream_id(stream_id)
    cut = len(body) - _STREAM_ID_LENGTH - len(_TAIL)
    if cut < 0 or not body.endswith(_TAIL) or STREAM_ID_PATTERN.fullmatch(body[cut : -len(_TAIL)].decode("ascii", "replace")) is None:
        raise ValueError("These bytes are not a stored envelope: a stored envelope ends with its stream id.")
    return body[:cut] + stream_id.encode() + _TAIL


def event_message(event_type: str, offset: str, body: bytes) -> bytes:
    """Return the message of an event. Its members are `type`, `offset` and `event`; `event` contains the stored bytes unchanged."""
    return b'{"type":"%b","offset":"%b","event":%b}' % (event_type.encode(), offset.encode(), body)


def offset_only_message(offset: str) -> bytes:
    """Return the `offset-only` message, which advances the client's offset and contains no event."""
    return orjson.dumps({"type": "offset-only", "offset": offset})


def error_message(code: str, message: str, offset: str | None) -> bytes:
    """Return the error message that ends a stream, without `offset` if the offset is unknown."""
    detail = {"code": code, "message": message}
    if offset is not None:
        detail["offset"] = offset
    return escape_terminator(orjson.dumps({"type": "error", "error": detail}))


def message_size(event_type: str, body: bytes) -> int:
    """Return the size in bytes of the message around `body` with an offset of maximum length."""
    return len(event_message(event_type, "", body)) + MAX_OFFSET_LENGTH


def _encoded(value: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        # PostgreSQL's jsonb accepts integers beyond 64 bits, but the fast encoder does not.
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _require_stream_id(stream_id: str) -> None:
    if STREAM_ID_PATTERN.fullmatch(stream_id) is None:
        raise ValueError("A stream id is `est_` and 22 letters or digits.")
