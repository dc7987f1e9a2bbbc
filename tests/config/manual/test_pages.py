"""The generated pages of the manual match the code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from config.manual.event_schema import schema_document
from config.manual.pages import all_pages, stale_pages, write_pages
from events.record.catalogue import EVENT_TYPES
from tests.events.test_event_types import GOLDEN

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference"


def test_every_generated_page_is_up_to_date() -> None:
    assert stale_pages(REFERENCE, all_pages()) == [], "run `make describe` and review the differences"


def test_the_generator_finds_and_repairs_changed_missing_and_superfluous_pages(tmp_path: Path) -> None:
    pages = {"settings.md": "settings\n", "events/user.md": "users\n", "events/group.md": "groups\n"}
    write_pages(tmp_path, pages)
    (tmp_path / "settings.md").write_text("older\n")
    (tmp_path / "events/group.md").unlink()
    (tmp_path / "events/robot.md").write_text("robots\n")
    (tmp_path / "by-hand.md").write_text("stays\n")

    assert stale_pages(tmp_path, pages) == ["events/group.md", "events/robot.md", "settings.md"]
    assert write_pages(tmp_path, pages) == ["events/group.md", "events/robot.md", "settings.md"]
    assert stale_pages(tmp_path, pages) == []
    assert (tmp_path / "by-hand.md").read_text() == "stays\n"


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_the_published_schema_accepts_a_recorded_event_and_rejects_unknown_fields(name: str) -> None:
    definitions = json.loads(schema_document())["$defs"]
    validator = jsonschema_rs.Draft202012Validator(definitions[name] | {"$defs": definitions})
    data = json.loads((GOLDEN / f"{name}.json").read_text().replace("<time>", "2026-01-15T09:30:00.000Z"))["data"]

    validator.validate(data)
    for changed in _with_a_field_more(data):
        with pytest.raises(jsonschema_rs.ValidationError):
            validator.validate(changed)
    for missing in ("object", *(["previous_object"] if "previous_object" in data else [])):
        with pytest.raises(jsonschema_rs.ValidationError):
            validator.validate({key: value for key, value in data.items() if key != missing})


def _with_a_field_more(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield three copies of the data, with an unknown field at the top level, in the object, and in the context."""
    yield {**data, "surprise": 1}
    for name in ("object", "context"):
        yield {**data, name: {**data[name], "surprise": 1}}
