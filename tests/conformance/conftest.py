"""The servers under test. Each server is started once with short times, and each test gets a new tenant."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pytest_django.plugin import DjangoDbBlocker

from identity.models import Tenant
from tests.cluster.pgbouncer import pgbouncer
from tests.conformance.reader import Subscriber
from tests.conformance.remote import URL_VARIABLE, RemoteTarget, is_remote, remote_target
from tests.conformance.target import Target, make_target
from tests.conformance.web_process import SERVERS, WebProcess, web_process
from tests.peers.proxies import proxy

HEARTBEAT_SECONDS = 0.6


# These additional servers are a proxy and a pooler. They would make `make test` too slow, so a run uses them only if `CONFORMANCE_SERVERS`
# names them.
_BEHIND_NGINX = "nginx"
# This server connects to its database through PgBouncer in session mode.
_BEHIND_PGBOUNCER = "pgbouncer"
CHOSEN = os.environ.get("CONFORMANCE_SERVERS", "").split() or [*SERVERS]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that cannot run against a remote service. With Daphne, tests that do not depend on the transport run only in `make
    test-deep`."""
    for item in items:
        if "tests/conformance" not in item.path.as_posix():
            continue
        if is_remote() and item.get_closest_marker("remote") is None:
            item.add_marker(pytest.mark.skip(reason=f"the test needs the service's database; {URL_VARIABLE} names a remote service"))
        if _runs_on(item, "daphne") and item.get_closest_marker("transport") is None:
            item.add_marker(pytest.mark.deep)


def _runs_on(item: pytest.Item, server: str) -> bool:
    called = getattr(item, "callspec", None)
    return called is not None and called.params.get("server") == server


@pytest.fixture(scope="session", params=["remote"] if is_remote() else CHOSEN)
def server(request: pytest.FixtureRequest) -> Iterator[WebProcess | None]:
    """A server with short heartbeats and long streams, or None for a remote service."""
    if is_remote():
        yield None
        return
    request.getfixturevalue("django_db_setup")
    blocker: DjangoDbBlocker = request.getfixturevalue("django_db_blocker")
    with blocker.unblock(), _server(request.param) as web:
        yield web


@contextmanager
def _server(name: str) -> Iterator[WebProcess]:
    options = {"EVENTS_HEARTBEAT_SECONDS": str(HEARTBEAT_SECONDS), "RATE_LIMIT_BURST": "100000", "EVENTS_DRAIN_SECONDS": "3"}
    if name == _BEHIND_PGBOUNCER:
        with pgbouncer("session") as url, web_process("uvicorn", DATABASE_URL=url, **options) as web:
            yield web
        return
    with web_process("uvicorn" if name == _BEHIND_NGINX else name, **options) as web:
        if name != _BEHIND_NGINX:
            yield web
            return
        with proxy("nginx that uses HTTP/1.1", web.address) as front:
            web.address = front.address
            yield web


@pytest.fixture
def target(request: pytest.FixtureRequest, server: WebProcess | None) -> Target | RemoteTarget:
    """A new tenant on the server, or the tenant that the environment names."""
    if server is None:
        return remote_target()
    tenant: Tenant = request.getfixturevalue("tenant")
    return make_target(tenant, server.address)


@pytest.fixture(autouse=True)
def no_stream_left_open() -> Iterator[None]:
    """Close streams that a test left open, also after a failed test."""
    yield
    for stream in list(Subscriber.still_open):
        stream.close()
