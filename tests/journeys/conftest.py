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
        # Also what did not come up in time goes on, since it is detached.
        running.down()
