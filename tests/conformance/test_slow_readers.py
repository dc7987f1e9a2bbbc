"""A client that stops reading uses little memory of the server, delays no other client, and is disconnected."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from identity.models import Tenant
from tests.conformance.reader import Subscriber
from tests.conformance.target import Target, make_target
from tests.conformance.web_process import SERVERS, WebProcess, web_process

DEADLINE_SECONDS = 2.0
READERS = 6
# The maximum number of streams that a tenant can open. The test can open this number again only after every blocked client was
# disconnected.
SLOTS = 8
# Memory limit in bytes per blocked client: up to 256 KiB of the service, and the buffers of the web server.
BYTES_PER_READER = 1024 * 1024


@pytest.fixture(scope="module", params=SERVERS)
def impatient(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    """A server that waits two seconds for a blocked write."""
    times = {"EVENTS_WRITE_DEADLINE_SECONDS": str(DEADLINE_SECONDS), "EVENTS_HEARTBEAT_SECONDS": "0.5"}
    with django_db_blocker.unblock(), web_process(request.param, **times) as web:
        yield web


def _history(target: Target) -> str:
    """Append 16 MB of events to the log and return the offset before them."""
    with target.subscribe() as stream:
        start = stream.opened().id or ""
    for _ in range(8):
        target.write(*["user.updated"] * 100, padding=20_000)
    return start


def test_blocked_clients_use_bounded_memory_and_are_disconnected_while_other_clients_continue(
    impatient: WebProcess, tenant: Tenant
) -> None:
    target = make_target(tenant, impatient.address)
    start = _history(target)
    token = target.token()
    with target.subscribe({"from": start}, token=token) as warm:
        warm.opened()
        warm.events(800, within=30.0)
    before = impatient.resident_bytes()
    stopped = [target.subscribe({"from": start}, token=token, receive_buffer=4096) for _ in range(READERS)]
    with target.subscribe(token=token) as live:
        live.opened()
        until = time.monotonic() + DEADLINE_SECONDS * 0.8
        while time.monotonic() < until:
            [expected] = target.write("user.created")
            assert live.events(1, within=2.0)[0].message["event"]["id"] == expected
        grown = impatient.resident_bytes() - before
    assert grown < READERS * BYTES_PER_READER, f"{grown / READERS / 1024:.0f} KiB per reader"
    _slots_come_back(target, token, within=DEADLINE_SECONDS * 10)
    for stream in stopped:
        stream.read_to_end(within=10.0)
        assert not stream.ended_cleanly


def _slots_come_back(target: Target, token: str, *, within: float) -> None:
    until = time.monotonic() + within
    opened: list[Subscriber] = []
    while len(opened) < SLOTS:
        stream = target.subscribe(token=token)
        if stream.status == 200:
            opened.append(stream)
        else:
            stream.close()
            assert time.monotonic() < until, f"{len(opened)} of {SLOTS} slots were freed"
