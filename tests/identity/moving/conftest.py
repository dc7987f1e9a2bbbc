"""Fixtures for tests of moves: a destination that records deliveries, and another installation as the target."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.identity.moving.installations import Target, other_installation
from tests.provisioning.engine.conftest import recorder

__all__ = ["recorder"]


@pytest.fixture
def target(committed_db: None) -> Iterator[Target]:
    with other_installation() as target:
        yield target
