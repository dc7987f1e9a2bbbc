"""One running service for all journeys of a test run. Each journey creates its own users, so it need not delete them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journeys.service import Service
from tests.ports import free_port


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("journey"), free_port())
    try:
        running.up()
        yield running
    finally:
        # Stop the processes even after a failed start: they are detached from the tests and would continue to run.
        running.down()
