"""Real SCIM servers. Each test runs once per server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.factories.scim import MisbehavingServer, RealServer, misbehaving_server
from tests.factories.scim_relay import Relay
from tests.peers.scim_servers import SERVERS, running


@pytest.fixture(scope="session", params=SERVERS)
def scim_process(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    with running(request.param) as server:
        yield server


@pytest.fixture
def server(scim_process: RealServer) -> Iterator[RealServer]:
    """A real server without users."""
    yield scim_process
    scim_process.clear()


@pytest.fixture
def relay(server: RealServer) -> Relay:
    """The relay in front of the real server, at the URL of `front`."""
    return Relay(server)


@pytest.fixture
def front(relay: Relay) -> Iterator[MisbehavingServer]:
    with misbehaving_server(relay) as running_relay:
        yield running_relay
