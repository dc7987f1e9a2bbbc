"""Streams that request only some event types. Events that the filter excludes also advance the cursor."""

from __future__ import annotations

import pytest

from tests.conformance.target import Target


def test_only_the_named_types_are_delivered(target: Target) -> None:
    with target.subscribe({"event_type": ["user.created", "connection.deleted"]}) as stream:
        stream.opened()
        ids = target.write("user.created", "user.updated", "connection.deleted", "connection.created", "user.created")
        events = stream.events(3)
        assert [block.message["event"]["id"] for block in events] == [ids[0], ids[2], ids[4]]


@pytest.mark.transport
def test_a_heartbeat_advances_the_cursor_past_excluded_events(target: Target) -> None:
    with target.subscribe({"event_type": "user.deleted"}) as stream:
        first = stream.opened()
        target.write("user.created", "user.updated")
        block = stream.block()
        while block.event != "offset-only" or block.id == first.id:
            block = stream.block()
    [expected] = target.write("user.created")
    with target.subscribe({"from": block.id}) as stream:
        stream.opened()
        assert stream.events(1)[0].message["event"]["id"] == expected


def test_a_heartbeat_never_contains_a_position_after_an_unsent_event(target: Target) -> None:
    with target.subscribe({"event_type": "user.created"}) as stream:
        stream.opened()
        written: list[str] = []
        for _ in range(5):
            written += target.write("user.created", "user.updated")[:1]
        seen: list[str] = []
        offset = None
        while len(seen) < 5 or offset is None:
            block = stream.block()
            if block.event == "user.created":
                seen.append(block.message["event"]["id"])
            elif block.event == "offset-only":
                offset = block.id
                rest = [event for event in written if event not in seen]
                with target.subscribe({"from": offset, "event_type": "user.created"}) as again:
                    again.opened()
                    assert [found.message["event"]["id"] for found in again.events(len(rest))] == rest


def test_a_cursor_is_valid_with_any_filter(target: Target) -> None:
    with target.subscribe({"event_type": "user.created"}) as stream:
        stream.opened()
        ids = target.write("user.created", "user.updated", "user.deleted")
        offset = stream.events(1)[0].id
    with target.subscribe({"from": offset, "event_type": ["user.deleted", "user.updated"]}) as stream:
        stream.opened()
        assert [block.message["event"]["id"] for block in stream.events(2)] == ids[1:]


def test_a_replay_finds_a_rare_type_after_many_other_events(target: Target) -> None:
    with target.subscribe() as stream:
        start = stream.opened().id
    target.write(*["user.updated"] * 1500)
    [expected] = target.write("connection.deleted")
    with target.subscribe({"from": start, "event_type": "connection.deleted"}) as stream:
        stream.opened()
        assert stream.events(1)[0].message["event"]["id"] == expected
