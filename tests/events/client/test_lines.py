"""The readable line of an event, for every event type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.client.lines import event_line
from events.record.catalogue import EVENT_TYPES

GOLDEN = Path(__file__).parents[1] / "golden"


def line_of(name: str, data: dict[str, Any], **envelope: Any) -> str:
    event = {"time": "2026-05-01T12:00:00.000Z", "data": data, **envelope}
    return event_line(name, json.dumps({"type": name, "offset": "x", "event": event}).encode())


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_the_line_of_every_type_contains_the_identity_of_its_entity(name: str) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    line = event_line(name, json.dumps({"event": golden}).encode())
    assert name in line
    entity = line.partition(name)[2].split("  ")
    assert "?" not in "".join(entity)
    assert line.isprintable()


def test_the_line_of_an_update_contains_the_changed_fields() -> None:
    before = {"user_id": "database|1", "name": "Ada", "user_metadata": {"phone": "1", "city": "Oslo"}, "updated_at": "a"}
    after = {"user_id": "database|1", "name": "Ada L.", "user_metadata": {"phone": "2", "city": "Oslo"}, "blocked": True, "updated_at": "b"}
    line = line_of("user.updated", {"object": after, "previous_object": before})
    assert line.endswith('database|1  name "Ada" -> "Ada L.", user_metadata.phone "1" -> "2", blocked true')


def test_the_line_of_many_changes_shows_their_number() -> None:
    line = line_of("user.updated", {"object": {f"f{n}": 1 for n in range(9)}, "previous_object": {"user_id": "u"}})
    assert line.endswith("f0 1, f1 1, f2 1, and 7 more")


def test_a_test_event_is_marked() -> None:
    assert line_of("user.created", {"object": {"user_id": "u", "email": "a@b.example"}}, x0purpose="test").endswith(
        'u  "a@b.example"  (test)'
    )


@given(st.text(), st.text())
def test_control_characters_in_the_text_of_a_user_never_reach_the_terminal(name: str, email: str) -> None:
    line = line_of("user.updated", {"object": {"user_id": name, "email": email}, "previous_object": {"user_id": name, "email": None}})
    assert line.isprintable()


@given(st.binary())
def test_a_message_that_is_not_an_event_gives_a_printable_line(data: bytes) -> None:
    assert event_line("user.created", data).isprintable()


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_a_line_is_written_for_any_json(content: Any) -> None:
    for message in (
        content,
        {"event": content},
        {"event": {"time": content, "data": content}},
        {"event": {"time": "t", "data": {"object": content}}},
    ):
        assert event_line("user.updated", json.dumps(message).encode()).isprintable()
