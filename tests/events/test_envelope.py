"""The stored bytes of an event: their order and size limit, the envelope for another stream, and refused values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import orjson
import pytest

from events.log.envelope import (
    EventTooLarge,
    encode_envelope,
    error_message,
    event_message,
    event_source,
    message_size,
    offset_only_message,
    with_stream,
)
from foundation.timestamps import wire_time

OURS, OTHER = "est_" + "a" * 22, "est_" + "b" * 22
MOMENT = datetime(2026, 2, 3, 4, 5, 6, 789_999, tzinfo=UTC)


def _encoded(data: dict[str, Any] | None = None, **changes: Any) -> bytes:
    arguments: dict[str, Any] = {
        "event_type": "user.created",
        "source": event_source("svc", "acme", "acme.example"),
        "event_id": "evt_" + "c" * 22,
        "time": MOMENT,
        "data": data or {"object": {"user_id": "database|1"}},
        "tenant_id": "acme",
        "stream_id": OURS,
        "max_bytes": 4096,
    }
    return encode_envelope(**arguments | changes)


def test_the_envelope_has_exactly_these_bytes() -> None:
    assert _encoded() == (
        b'{"specversion":"1.0","type":"user.created","source":"urn:svc:acme.acme.example","id":"evt_cccccccccccccccccccccc",'
        b'"time":"2026-02-03T04:05:06.789Z","data":{"object":{"user_id":"database|1"}},"x0tenant":"acme","x0stream":"'
        + OURS.encode()
        + b'"}'
    )


def test_the_members_for_tenant_and_stream_and_purpose_have_the_prefix() -> None:
    envelope = orjson.loads(_encoded(prefix="a0", purpose="test"))
    assert (envelope["a0tenant"], envelope["a0stream"], envelope["a0purpose"]) == ("acme", OURS, "test")
    assert not [name for name in envelope if name.startswith("x0")]


def test_the_envelope_for_another_stream_differs_only_in_the_id_of_the_stream() -> None:
    body = _encoded({"object": {"note": f'x0stream":"{OURS}"}}'}})
    swapped = with_stream(body, OTHER)
    assert orjson.loads(swapped) == orjson.loads(body) | {"x0stream": OTHER}
    assert with_stream(swapped, OURS) == body


@pytest.mark.parametrize("body", [b"", b"{}", b'{"x0stream":"est_short"}', _encoded()[:-1]])
def test_bytes_that_are_not_an_envelope_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="envelope"):
        with_stream(body, OTHER)


@pytest.mark.parametrize("text", ["[DONE]", r"\[DONE]", "a[DONE][DONE]b", "[[DONE]]", "\\\\[DONE]"])
def test_a_text_that_could_end_a_stream_for_some_clients_is_escaped(text: str) -> None:
    body = _encoded({"object": {text: text}})
    assert b"[DONE]" not in body
    assert orjson.loads(body)["data"]["object"] == {text: text}
    assert b"[DONE]" not in error_message("timeout", text, None)


def test_a_message_has_first_type_then_offset_then_event() -> None:
    message = event_message("user.created", "cur", _encoded())
    assert list(orjson.loads(message)) == ["type", "offset", "event"]
    assert message.endswith(_encoded() + b"}")
    assert orjson.loads(offset_only_message("cur")) == {"type": "offset-only", "offset": "cur"}
    assert orjson.loads(error_message("timeout", "Slow.", "cur")) == {
        "type": "error",
        "error": {"code": "timeout", "message": "Slow.", "offset": "cur"},
    }


def test_the_size_limit_applies_to_the_whole_message_with_the_longest_offset() -> None:
    size = message_size("user.created", _encoded())
    assert size == len(event_message("user.created", "o" * 64, _encoded()))
    assert _encoded(max_bytes=size)
    with pytest.raises(EventTooLarge) as refused:
        _encoded(max_bytes=size - 1)
    assert (refused.value.size, refused.value.limit) == (size, size - 1)


def test_the_time_is_utc_with_milliseconds() -> None:
    assert wire_time(MOMENT.astimezone(timezone(timedelta(hours=5)))) == "2026-02-03T04:05:06.789Z"
    assert wire_time(MOMENT.replace(microsecond=0)) == "2026-02-03T04:05:06.000Z"
    with pytest.raises(ValueError, match="time zone"):
        wire_time(MOMENT.replace(tzinfo=None))


@pytest.mark.parametrize("changes", [{"prefix": "X0"}, {"prefix": ""}, {"prefix": 'a"'}, {"stream_id": "est_1"}])
def test_a_malformed_prefix_or_stream_id_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"prefix|stream id"):
        _encoded(**changes)
