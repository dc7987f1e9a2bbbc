"""Runs each test of this folder against each third-party SCIM server. The report of a failure contains the output of the server."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterator

import pytest
from django.conf import settings as django_settings
from pytest_django.fixtures import Settings

from identity.models import Connection, Tenant
from tests.factories.models.identity import ConnectionFactory, TenantFactory
from tests.factories.scim import MisbehavingServer, RealServer
from tests.factories.scim_relay import Relay
from tests.peers.accounts.side import Side
from tests.peers.accounts.strangers import Strangers
from tests.peers.scim_servers import ALL_SERVERS, outputs, running

_MOST_OUTPUT_CHARACTERS = 20_000


@pytest.fixture(scope="session", params=ALL_SERVERS)
def scim_process(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    with running(request.param) as server:
        yield server


@pytest.fixture
def strangers(server: RealServer) -> Strangers:
    """On the server, create two accounts that do not belong to this service, one of them with the key of another client."""
    found = Strangers(server)
    found.add("neighbor@example.test", external_id="okta|77")
    found.add("other@example.test")
    return found


@pytest.fixture
def side(tenant: Tenant, database_connection: Connection, front: MisbehavingServer, relay: Relay) -> Side:
    """Return a tenant that provisions its users to the server, through a relay that can change or lose responses."""
    return Side(tenant, database_connection, front.base_url, relay.server.name)


@pytest.fixture
def other_side(committed_db: None, front: MisbehavingServer, relay: Relay) -> Side:
    """Return another tenant that provisions its users to the same server."""
    tenant_id = f"t-{secrets.token_hex(6)}"
    tenant = TenantFactory.create(id=tenant_id, name=tenant_id, host=f"{tenant_id}.example.test")
    connection = ConnectionFactory.create(tenant_id=tenant_id, name="people", strategy=django_settings.DATABASE_STRATEGY)
    return Side(tenant, connection, front.base_url, relay.server.name)


@pytest.fixture(autouse=True)
def _one_attempt(settings: Settings) -> None:
    """Turn each failure into a dead letter after the first attempt, and switch off the breaker, which would hold the stream."""
    settings.DELIVERY_RETRY_DELAYS = []
    settings.BREAKER_FAILURES = 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the output of the servers, and the requests that this service has sent, to the report of a failure."""
    report = yield
    if report.failed:
        for name, path in outputs.items():
            report.sections.append((f"output of {name}", path.read_text(errors="replace")[-_MOST_OUTPUT_CHARACTERS:]))
        front = getattr(item, "funcargs", {}).get("front")
        if isinstance(front, MisbehavingServer):
            lines = [f"{request.verb} {request.target} {request.body.decode(errors='replace')}" for request in front.received]
            report.sections.append(("requests of the service", "\n".join(lines)))
    return report
