"""Open connections in all processes, and what a client sees when its connection is closed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from events.stream.operating.connections import OpenConnection, disconnect, open_connections
from identity.models import Tenant
from tests.conformance.target import make_target
from tests.conformance.web_process import WebProcess, web_process
from tests.deadlines import eventually
from tests.factories.models.identity import TenantFactory


@pytest.fixture(scope="module")
def pair(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[list[WebProcess]]:
    """Two servers, each with one process."""
    times = {"EVENTS_HEARTBEAT_SECONDS": "0.5"}
    with django_db_blocker.unblock(), web_process("uvicorn", **times) as first, web_process("uvicorn", **times) as second:
        yield [first, second]


def _found(tenant: Tenant, count: int) -> list[OpenConnection]:
    seen: list[OpenConnection] = []

    def all_there() -> bool:
        answer = open_connections(tenant.pk)
        seen[:] = answer.connections
        return len(seen) == count and answer.silent_processes == 0

    eventually(all_there)
    return seen


def test_the_list_contains_the_streams_of_a_tenant_in_every_process(pair: list[WebProcess], tenant: Tenant) -> None:
    targets = [make_target(tenant, web.address) for web in pair]
    with targets[0].subscribe() as one, targets[1].subscribe({"event_type": ["user.deleted", "user.created"]}) as two:
        one.opened()
        two.opened()
        targets[0].write("user.updated", "user.created")
        one.events(2)
        two.events(1)
        first, second = _found(tenant, 2)
        assert [first.client_id, second.client_id] == [target.client.client_id for target in targets]
        assert [first.types, second.types] == [None, ("user.created", "user.deleted")]
        assert first.process != second.process
        assert first.connection_id != second.connection_id
        for connection in (first, second):
            assert connection.tenant_id == tenant.pk
            assert connection.address == "127.0.0.1"
            assert (connection.position, connection.head, connection.lag_events, connection.lag_ms) == (2, 2, 0, 0)
            assert connection.opened_at < connection.written_at
            assert connection.blocked_since is None
        assert first.bytes_written == len(one.body)


def test_streams_of_another_tenant_are_not_listed(pair: list[WebProcess], tenant: Tenant) -> None:
    target = make_target(tenant, pair[0].address)
    other = TenantFactory.create(id=f"{tenant.pk}-2", name="other", host=f"{tenant.pk}-2.example.test")
    with target.subscribe() as stream:
        stream.opened()
        [connection] = _found(tenant, 1)
        assert open_connections(other.pk).connections == []
        assert not disconnect(other.pk, connection.connection_id)
        target.write("user.created")
        stream.events(1)


def test_a_disconnected_stream_ends_with_its_offset_and_the_other_streams_continue(pair: list[WebProcess], tenant: Tenant) -> None:
    targets = [make_target(tenant, web.address) for web in pair]
    with targets[0].subscribe() as stays, targets[1].subscribe() as goes:
        stays.opened()
        start = goes.opened().id
        chosen = next(found for found in _found(tenant, 2) if found.client_id == targets[1].client.client_id)
        asked = time.monotonic()
        assert disconnect(tenant.pk, chosen.connection_id)
        *_, error = goes.blocks()
        assert time.monotonic() - asked < 1.0
        assert (error.message["error"]["code"], error.message["error"]["offset"]) == ("connection_timeout", start)
        assert goes.ended_cleanly
        targets[0].write("user.created")
        stays.events(1)
        assert not disconnect(tenant.pk, chosen.connection_id)


def test_a_blocked_client_is_listed_as_blocked_and_its_connection_can_be_closed(pair: list[WebProcess], tenant: Tenant) -> None:
    target = make_target(tenant, pair[0].address)
    with target.subscribe() as stream:
        start = stream.opened().id
    for _ in range(6):
        target.write(*["user.updated"] * 50, padding=20_000)
    with target.subscribe({"from": start}, receive_buffer=4096) as stopped:
        blocked: list[OpenConnection] = []

        def is_blocked() -> bool:
            # Wait until the client has been blocked for more than a second. Earlier, the kernel may still accept data, so the client
            # would still get the last bytes.
            seen = open_connections(tenant.pk).connections
            a_second_ago = timezone.now() - timedelta(seconds=1)
            blocked[:] = [found for found in seen if found.blocked_since is not None and found.blocked_since < a_second_ago]
            return bool(blocked)

        eventually(is_blocked)
        assert blocked[0].lag_events > 0
        assert disconnect(tenant.pk, blocked[0].connection_id)
        eventually(lambda: open_connections(tenant.pk).connections == [], seconds=5.0)
        stopped.read_to_end()
        assert not stopped.ended_cleanly
