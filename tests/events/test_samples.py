"""Samples match the schemas of real events of their types."""

from __future__ import annotations

import pytest

from events.record.catalogue import EVENT_TYPES
from events.record.samples import sample_data
from events.record.schemas import check_data


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_a_sample_matches_the_closed_schema_of_its_type(event_type: str) -> None:
    check_data(event_type, sample_data(event_type, tenant_id="acme", time="2026-01-01T00:00:00.000Z"))
