"""The servers under test: each started once with short times, each test with a tenant of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from identity.models import Tenant
from tests.conformance.reader import Subscriber
from tests.conformance.target import Target, make_target
from tests.conformance.web_process import SERVERS, WebProcess, web_process

HEARTBEAT_SECONDS = 0.6


@pytest.fixture(scope="session", params=SERVERS)
def server(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    """A server whose heartbeats are short and whose streams live long."""
    with django_db_blocker.unblock():
        running = web_process(
            request.param, EVENTS_HEARTBEAT_SECONDS=str(HEARTBEAT_SECONDS), RATE_LIMIT_BURST="100000", EVENTS_DRAIN_SECONDS="3"
        )
        with running as web:
            yield web


@pytest.fixture
def target(server: WebProcess, tenant: Tenant) -> Target:
    """A fresh tenant on the server."""
    return make_target(tenant, server.address)


@pytest.fixture(autouse=True)
def no_stream_left_open() -> Iterator[None]:
    """Close what a test left open, whatever became of it."""
    yield
    for stream in list(Subscriber.still_open):
        stream.close()
