"""Fixtures with real SCIM servers. A test that uses them runs once for each server."""

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
    """Return a real server that has no users. Delete the users that the test creates."""
    yield scim_process
    scim_process.clear()


@pytest.fixture
def relay(server: RealServer) -> Relay:
    """Return the relay in front of the real server. The service reaches the relay at the URL of `front`."""
    return Relay(server)


@pytest.fixture
def front(relay: Relay) -> Iterator[MisbehavingServer]:
    with misbehaving_server(relay) as running_relay:
        yield running_relay
