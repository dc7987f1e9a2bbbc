"""Fixtures of the authentication interface."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from authapi import throttling
from tests.authapi.memory import forget_all


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    """Let every test start in a process that has just begun, with counters of its own."""
    forget_all()
    throttling._blocked.clear()
    throttling.counters.cache_clear()
    yield
    throttling.counters.cache_clear()
