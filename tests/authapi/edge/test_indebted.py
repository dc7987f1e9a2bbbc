"""Requests of an indebted IP address, whose debt has reached the limit, run one at a time.

Requests that need a password hash have a queue of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Barrier, Event, Lock
from typing import Any

import pytest
import time_machine

from authapi.edge.addresses import keys_of
from authapi.edge.indebted import is_indebted, note_refusal
from authapi.edge.rate_figures import debt_figure
from authapi.views.chain import Answer, Application, Call, Later, hot_endpoint
from identity.models import Tenant

ADDRESS = "192.0.2.66"
_SECONDS = 20.0


@dataclass
class Hash:
    """Slow work that runs until `gate` opens. `peak` is the largest number of runs at the same time."""

    gate: Event = field(default_factory=Event)
    has_begun: Event = field(default_factory=Event)
    peak: int = 0
    _running: int = 0
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, _call: Call) -> Later:
        return Later(self._work)

    def _work(self) -> Answer:
        with self._lock:
            self._running += 1
            self.peak = max(self.peak, self._running)
        self.has_begun.set()
        self.gate.wait(_SECONDS)
        with self._lock:
            self._running -= 1
        return Answer(200, b"")


async def status_of(application: Application, tenant: Tenant) -> int:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def collect(message: Any) -> None:
        sent.append(message)

    host = f"{tenant.pk}.example.test".encode()
    await application({"type": "http", "method": "POST", "headers": [(b"host", host)], "client": (ADDRESS, 1)}, receive, collect)
    return int(sent[0]["status"])


@pytest.fixture
def _debt() -> Iterator[None]:
    """Raise the debt of the IP address to its limit, in a minute that has just begun."""
    with time_machine.travel(datetime(2031, 5, 1, 12, 0, tzinfo=UTC)):
        for _ in range(debt_figure().burst):
            note_refusal(keys_of(ADDRESS))
        assert is_indebted(keys_of(ADDRESS))
        yield


@pytest.mark.usefixtures("_debt")
async def test_hashes_for_an_indebted_ip_address_run_one_at_a_time_without_delaying_tokens(tenant: Tenant) -> None:
    work = Hash()
    slow = hot_endpoint(work, name="probe", methods=("POST",))
    fast = hot_endpoint(lambda _call: Answer(200, b""), name="probe", methods=("POST",))
    async with asyncio.timeout(_SECONDS), asyncio.TaskGroup() as tasks:
        try:
            logins = [tasks.create_task(status_of(slow, tenant)) for _ in range(3)]
            await asyncio.to_thread(work.has_begun.wait, _SECONDS)
            # The first login hashes until `gate` opens. The other two logins reach their hashes while these five requests are answered,
            # so only the limit keeps `peak` at 1.
            assert [await status_of(fast, tenant) for _ in range(5)] == [200] * 5
        finally:
            work.gate.set()
    assert ([login.result() for login in logins], work.peak) == ([200] * 3, 1)


async def test_hashes_for_an_ip_address_without_debt_run_in_parallel(tenant: Tenant) -> None:
    meeting = Barrier(2)

    def meet() -> Answer:
        meeting.wait(_SECONDS)
        return Answer(200, b"")

    application = hot_endpoint(lambda _call: Later(meet), name="probe", methods=("POST",))
    assert await asyncio.gather(*(status_of(application, tenant) for _ in range(2))) == [200, 200]
