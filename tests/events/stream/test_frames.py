"""The exact bytes of frames."""

from __future__ import annotations

from datetime import UTC, datetime

from events.log.cursor import Cursor, CursorSealer
from events.log.reading import LoggedEvent
from events.stream import frames
from events.stream.lag import Lag

SEALER = CursorSealer({"k1": "k" * 40}, tenant_id="acme")
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def test_an_event_frame_has_three_lines_with_the_stored_bytes() -> None:
    body = b'{"specversion":"1.0","data":{"text":"line\\nbreak"}}'
    [frame] = frames.encode_frames([LoggedEvent(7, MOMENT, "user.created", body)], epoch=1, sealer=SEALER)
    offset = SEALER.seal(Cursor(1, 7)).encode()
    assert frame.data == (
        b"event: user.created\nid: " + offset + b'\ndata: {"type":"user.created","offset":"' + offset + b'","event":' + body + b"}\n\n"
    )
    assert (frame.position, frame.recorded_at, frame.type) == (7, MOMENT, "user.created")


def test_the_opening_frame_has_a_comment_a_retry_delay_and_the_first_offset() -> None:
    assert frames.opening(2000, "abc") == (
        b':connected\n\nretry: 2000\n\nevent: offset-only\nid: abc\ndata: {"type":"offset-only","offset":"abc"}\n\n'
    )


def test_a_heartbeat_frame_is_two_comments_and_the_offset() -> None:
    assert frames.heartbeat("abc", Lag(12, 3, 450)) == (
        b': heartbeat\n:head=12 lag_events=3 lag_ms=450\n\nevent: offset-only\nid: abc\ndata: {"type":"offset-only","offset":"abc"}\n\n'
    )


def test_an_error_frame_has_no_id_and_has_its_offset_if_known() -> None:
    assert frames.error("timeout", "Slow.", "abc") == (
        b'event: error\ndata: {"type":"error","error":{"code":"timeout","message":"Slow.","offset":"abc"}}\n\n'
    )
    assert (
        frames.error("timeout", "Slow.", None) == b'event: error\ndata: {"type":"error","error":{"code":"timeout","message":"Slow."}}\n\n'
    )
