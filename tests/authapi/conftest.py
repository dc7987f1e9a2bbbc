"""Fixtures of the authentication interface."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from authapi.edge import indebted, throttling
from authapi.edge.address_rates import browsers, debts, visits
from tests.authapi.memory import forget_all


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    """Start every test with empty caches, as in a new process, and with new counters."""
    forget_all()
    for counts in (debts, visits, browsers):
        counts.clear()
    indebted._refusals.clear()
    throttling.counters.cache_clear()
    yield
    throttling.counters.cache_clear()
