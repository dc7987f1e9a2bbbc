"""The sample data of each event type matches the schema of the type, and has no other members."""

from __future__ import annotations

import pytest

from events.record.catalogue import EVENT_TYPES
from events.record.samples import sample_data
from events.record.schemas import check_data


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_the_sample_data_of_an_event_type_matches_its_closed_schema(event_type: str) -> None:
    check_data(event_type, sample_data(event_type, tenant_id="acme", time="2026-01-01T00:00:00.000Z"))
