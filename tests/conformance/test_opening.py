"""How a stream opens, and what every answer says about itself."""

from __future__ import annotations

from tests.conformance.target import Target


def test_a_stream_opens_with_connected_retry_and_the_current_offset(target: Target) -> None:
    target.write("user.created")
    with target.subscribe() as stream:
        assert stream.status == 200
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert stream.headers["cache-control"] == "no-store, no-transform"
        assert stream.headers["x-accel-buffering"] == "no"
        assert {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"} <= stream.headers.keys()
        first = stream.opened()
        assert stream.body.startswith(b":connected\n\nretry: 2000\n\nevent: offset-only\nid: ")
        assert first.message == {"type": "offset-only", "offset": first.id}
        assert first.id is not None
        assert len(first.id) <= 64


def test_without_a_start_nothing_older_than_the_connection_is_delivered(target: Target) -> None:
    target.write("user.created", "user.updated")
    with target.subscribe() as stream:
        stream.opened()
        [expected] = target.write("user.deleted")
        [event] = stream.events(1)
        assert event.message["event"]["id"] == expected


def test_a_message_is_type_offset_and_the_stored_envelope(target: Target) -> None:
    with target.subscribe() as stream:
        stream.opened()
        [event_id] = target.write("connection.created")
        [block] = stream.events(1)
        assert list(block.message) == ["type", "offset", "event"]
        assert block.event == block.message["type"] == block.message["event"]["type"] == "connection.created"
        assert block.id == block.message["offset"]
        envelope = block.message["event"]
        assert list(envelope) == ["specversion", "type", "source", "id", "time", "data", "x0tenant", "x0stream"]
        assert (envelope["id"], envelope["x0tenant"], envelope["x0stream"]) == (event_id, target.tenant.pk, target.head().stream_id)
