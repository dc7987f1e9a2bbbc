from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.factories.scim import RealServer, running_scim_server


@pytest.fixture(scope="session")
def scim_process() -> Iterator[RealServer]:
    with running_scim_server() as server:
        yield server


@pytest.fixture
def scim_server(scim_process: RealServer) -> Iterator[RealServer]:
    """Return the real SCIM server, which has no users."""
    yield scim_process
    scim_process.clear()
