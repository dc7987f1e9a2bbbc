"""Request rates per IP address: in one process, in several processes, for IPv6 networks, and without Redis."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
import time_machine

from authapi.edge import throttling
from authapi.edge.address_rates import AddressRates, charged_debt_in_thread, debt_of
from authapi.edge.addresses import AddressKey, Origin, keys_of, origin_of
from authapi.edge.rate_figures import Figure
from authapi.edge.throttling import Rate
from foundation.memory.sketch import Sketch

BEGIN = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)
LIMIT = 16


@pytest.fixture
def minute() -> Iterator[Any]:
    with time_machine.travel(BEGIN, tick=False) as clock:
        yield clock


@pytest.fixture
def name() -> str:
    return secrets.token_hex(6)


def process(name: str) -> AddressRates:
    """Return the counters of one process, under a name that all processes share."""
    return AddressRates(name, lambda: Figure(LIMIT / 60, LIMIT), is_switchable=False)


def counted(rates: AddressRates, keys: tuple[AddressKey, ...], times: int) -> Rate:
    found = [rates.count(keys) for _ in range(times)][-1]
    assert found is not None
    return found


@pytest.mark.usefixtures("minute")
def test_an_ip_address_is_refused_after_its_limit(name: str) -> None:
    rates, keys = process(name), keys_of("192.0.2.1")
    assert (counted(rates, keys, LIMIT).remaining, rates.is_over(keys)) == (0, True)
    assert counted(rates, keys, 1).is_exceeded
    assert not rates.is_over(keys_of("192.0.2.2"))


def test_the_next_window_restores_the_whole_limit(name: str, minute: Any) -> None:
    rates, keys = process(name), keys_of("192.0.2.1")
    counted(rates, keys, LIMIT + 5)
    minute.shift(timedelta(minutes=1))
    assert counted(rates, keys, 1).remaining == LIMIT - 1


@pytest.mark.usefixtures("minute")
def test_processes_share_the_count_of_an_ip_address_above_an_eighth_of_the_limit(name: str) -> None:
    one, other = process(name), process(name)
    keys = keys_of("192.0.2.1")
    assert counted(one, keys, 10).remaining == LIMIT - 10
    # The first two requests of the second process are below an eighth of the limit, so only the second process counts them.
    assert counted(other, keys, 2).remaining == LIMIT - 2
    assert counted(other, keys, 1).remaining == LIMIT - 13
    assert counted(other, keys, 4).is_exceeded


class MeetingSketch(Sketch):
    """A sketch (table of approximate counts) that makes two threads read the same count: each waits until the other has read the count."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self._meeting = Barrier(2)

    def read(self, name: str) -> int:
        count = super().read(name)
        self._meeting.wait(10)
        return count


@pytest.mark.usefixtures("minute")
def test_two_threads_that_read_the_same_count_add_it_to_redis_once(name: str) -> None:
    one, other = process(name), process(name)
    keys = keys_of("192.0.2.1")
    sketch = one._sketches[60] = MeetingSketch(60)
    sketch.add(keys[0].name, LIMIT // 8)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: one.count(keys), range(2)))
    # The count consists of two earlier requests, two simultaneous requests, and the three requests of the other process.
    assert counted(other, keys, 3).remaining == LIMIT - 7


@pytest.mark.usefixtures("minute")
def test_counts_below_an_eighth_of_the_limit_are_not_stored_in_redis(name: str) -> None:
    rates = process(name)
    for number in range(50):
        counted(rates, keys_of(f"192.0.2.{number}"), LIMIT // 8)
    storage = throttling.counters()._shared.storage
    assert not list(storage.scan_iter(f"*{name}*"))
    counted(rates, keys_of("192.0.2.7"), 1)
    assert len(list(storage.scan_iter(f"*{name}*"))) == 1


@pytest.mark.usefixtures("minute")
def test_requests_over_the_limit_do_not_change_the_count_in_redis(name: str) -> None:
    rates, keys = process(name), keys_of("192.0.2.1")
    counted(rates, keys, LIMIT + 1)
    storage = throttling.counters()._shared.storage
    key = next(iter(storage.scan_iter(f"*{name}*")))
    before = storage.get(key)
    counted(rates, keys, 100)
    assert storage.get(key) == before


@pytest.mark.usefixtures("minute")
def test_an_ipv6_site_has_sixteen_times_the_limit_of_one_network(name: str) -> None:
    rates = process(name)
    assert [(key.name, key.factor) for key in keys_of("2001:db8:1:2::3")] == [("2001:db8:1:2::/64", 1), ("2001:db8:1::/48", 16)]
    for number in range(LIMIT):
        counted(rates, keys_of(f"2001:db8:1:2::{number:x}"), 1)
    assert rates.is_over(keys_of("2001:db8:1:2:ffff::1"))
    assert not rates.is_over(keys_of("2001:db8:1:3::1"))
    for subnet in range(3, 18):
        counted(rates, keys_of(f"2001:db8:1:{subnet:x}::1"), LIMIT)
    fresh = keys_of("2001:db8:1:ff::1")
    assert rates.is_over(fresh)
    assert not rates.is_over(keys_of("2001:db8:2::1"))


@pytest.mark.usefixtures("minute")
def test_each_process_uses_its_own_counts_without_redis(name: str, settings: object) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        settings.REDIS_URL = f"redis://127.0.0.1:{listener.getsockname()[1]}/0"  # type: ignore[attr-defined]
    throttling.counters.cache_clear()
    one, other = process(name), process(name)
    assert counted(one, keys_of("192.0.2.1"), LIMIT).remaining == 0
    assert counted(one, keys_of("192.0.2.1"), 1).is_exceeded
    assert counted(other, keys_of("192.0.2.1"), 1).remaining == LIMIT - 1
    # Even without Redis, the process counts in a table of constant size. It does not store an entry for each IP address.
    assert not throttling.counters()._own.storage  # type: ignore[attr-defined]


def test_an_unknown_ip_address_is_not_over_a_limit() -> None:
    proxied = origin_of("10.0.0.1", "", ["10.0.0.0/8"])
    assert proxied == Origin("10.0.0.1", ())
    for _ in range(100):
        assert not charged_debt_in_thread("tenant", proxied).is_exceeded
    assert debt_of("tenant", proxied).remaining == debt_of("tenant", proxied).limit


@pytest.mark.usefixtures("minute")
def test_an_ip_address_has_separate_limits_at_two_tenants(name: str) -> None:
    origin = origin_of("192.0.2.1", "", [])
    for _ in range(61):
        charged_debt_in_thread(name, origin)
    assert debt_of(name, origin).is_exceeded
    assert debt_of(f"{name}-b", origin).remaining == 60
