"""One service with its own data for all journeys of a run. Each journey uses its own users, so no cleanup is necessary."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journeys.service import Service, free_port


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("journey"), free_port())
    try:
        running.up()
        yield running
    finally:
        # Stop everything, even after a failed start, because the processes are detached and would continue.
        running.down()
