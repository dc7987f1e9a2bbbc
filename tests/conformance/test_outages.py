"""Streams deliver every event, even if the database closes all connections or Redis is unavailable.

Open streams keep no database connection open. A process can be configured to serve streams and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker

from identity.models import Tenant
from tests.conformance.reader import Subscriber
from tests.conformance.target import Target, make_target
from tests.conformance.web_process import WebProcess, web_process


def _cut_every_other_connection() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.mark.transport
def test_no_event_is_lost_when_the_database_drops_every_connection(target: Target) -> None:
    with target.subscribe() as stream:
        stream.opened()
        ids = target.write("user.created")
        for _ in range(3):
            _cut_every_other_connection()
            ids += target.write("user.updated", "user.updated")
        assert [block.message["event"]["id"] for block in stream.events(7)] == ids


@pytest.mark.transport
def test_open_streams_keep_no_database_connection_open(target: Target) -> None:
    Tenant.objects.filter(pk=target.tenant.pk).update(max_event_connections=60)
    token = target.token()
    streams: list[Subscriber] = []
    until = time.monotonic() + 15
    while len(streams) < 40:
        stream = target.subscribe(token=token)
        if stream.status == 200:
            streams.append(stream)
        else:
            # The pool detects its closed connections one by one. Until it has detected all of them, clients may get 503 with Retry-After.
            assert (stream.status, int(stream.headers["retry-after"]) >= 1) == (503, True)
            assert time.monotonic() < until
    target.write("user.created")
    for stream in streams:
        stream.events(1)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()"
        )
        assert cursor.fetchone()[0] <= 8


@pytest.fixture(scope="module")
def without_redis(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    """A server without a reachable Redis."""
    with django_db_blocker.unblock(), web_process("uvicorn", REDIS_URL="redis://127.0.0.1:1/0") as web:
        yield web


def test_streams_open_and_deliver_events_and_are_counted_without_redis(without_redis: WebProcess, tenant: Tenant) -> None:
    Tenant.objects.filter(pk=tenant.pk).update(max_event_connections=2)
    target = make_target(tenant, without_redis.address)
    token = target.token()
    with target.subscribe(token=token) as one, target.subscribe(token=token) as two, target.subscribe(token=token) as three:
        assert [one.status, two.status, three.status] == [200, 200, 403]
        one.opened()
        two.opened()
        ids = target.write("user.created", "user.updated", announce=False)
        for stream in (one, two):
            assert [block.message["event"]["id"] for block in stream.events(2)] == ids


@pytest.fixture(scope="module")
def streams_only(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    """A server with the stream role."""
    with django_db_blocker.unblock(), web_process("uvicorn", WEB_ROLE="stream") as web:
        yield web


def test_a_stream_process_serves_only_streams(streams_only: WebProcess, tenant: Tenant) -> None:
    target = make_target(tenant, streams_only.address)
    with target.subscribe() as stream:
        stream.opened()
        ids = target.write("user.created")
        assert stream.events(1)[0].message["event"]["id"] == ids[0]
    for path in ("/api/v2/users", "/.well-known/jwks.json", "/admin/"):
        with target.subscribe(path=path) as other:
            assert other.status == 404
