"""Two processes serve one tenant. Clients get the same bytes from each process."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from identity.models import Tenant
from tests.conformance.target import Target, make_target
from tests.conformance.web_process import WebProcess, web_process


@pytest.fixture(scope="module")
def pair(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[list[WebProcess]]:
    """Two servers, each with one process."""
    with django_db_blocker.unblock(), web_process("uvicorn") as first, web_process("daphne") as second:
        yield [first, second]


def test_both_processes_deliver_the_same_bytes_for_the_same_position(pair: list[WebProcess], tenant: Tenant) -> None:
    target = make_target(tenant, pair[0].address)
    other = make_target(tenant, pair[1].address)
    with target.subscribe() as left, other.subscribe() as right:
        assert left.opened().id == right.opened().id
        for _ in range(20):
            target.write("user.created", "user.updated")
        # Here, each process sends new events to an open stream. Below, the second process reads the same events from the log.
        seen = [(block.id, block.data) for block in left.events(40)]
        assert [(block.id, block.data) for block in right.events(40)] == seen
    with other.subscribe({"from": seen[9][0]}) as right:
        right.opened()
        assert [(block.id, block.data) for block in right.events(30)] == seen[10:]


def test_two_writers_and_two_readers_see_one_order_without_a_gap(pair: list[WebProcess], tenant: Tenant) -> None:
    targets = [make_target(tenant, web.address) for web in pair]
    with targets[0].subscribe() as left, targets[1].subscribe() as right:
        left.opened()
        right.opened()
        with ThreadPoolExecutor(2) as writers:
            written = writers.map(lambda target: [_written(target) for _ in range(50)], targets)
        ids = {event for part in written for event in part}
        orders = [[block.message["event"]["id"] for block in stream.events(100)] for stream in (left, right)]
    assert orders[0] == orders[1]
    assert set(orders[0]) == ids


def test_slots_of_both_processes_are_counted_together(pair: list[WebProcess], tenant: Tenant) -> None:
    Tenant.objects.filter(pk=tenant.pk).update(max_event_connections=2)
    targets = [make_target(tenant, web.address) for web in pair]
    with targets[0].subscribe() as first, targets[1].subscribe() as second, targets[0].subscribe() as third:
        assert [first.status, second.status, third.status] == [200, 200, 403]


def _written(target: Target) -> str:
    try:
        [event] = target.write("user.updated")
        return event
    finally:
        connections.close_all()
