"""A stream over a slow network between the service and its reader."""

from __future__ import annotations

import statistics

import pytest

from tests.deadlines import eventually
from tests.faults.following import Follower, Following, assert_never_failed, latencies
from tests.faults.invariants import assert_holds
from tests.faults.proxy import Proxy
from tests.faults.world import World

pytestmark = pytest.mark.fault

_DELAY_SECONDS = 0.3
# The additional delay that a busy machine may cause for one of two readers.
_SLACK_SECONDS = 0.3
_EVENTS = 60


def test_the_network_latency_of_a_distant_reader_delays_each_event_once(world: World, following: Following) -> None:
    tenant = world.tenant()
    with world.web() as web, Proxy(web.address) as way:
        way.delay_seconds = _DELAY_SECONDS
        near = Follower("near", tenant, lambda: web.address)
        far = Follower("far", tenant, lambda: way.address)
        following.add(near, far)
        following.all_open(seconds=60)
        # Many events are in transit at any time. If one event waited for another, the delay would grow with each event.
        with world.writers(tenant, 1, count=_EVENTS, think=0.01) as writers:
            writers.wait()
            eventually(lambda: world.is_numbered(tenant))
        following.all_at(world.head(tenant))
        following.stop()
    recorded = world.recorded(tenant)
    apart = statistics.median(latencies([far], recorded)) - statistics.median(latencies([near], recorded))
    assert _DELAY_SECONDS * 0.9 <= apart <= _DELAY_SECONDS + _SLACK_SECONDS
    late = [far.arrived[position] - near.arrived[position] for position in sorted(far.arrived)]
    assert statistics.median(late[-10:]) <= _DELAY_SECONDS + _SLACK_SECONDS
    assert_never_failed(following)
    assert_holds(world.history(tenant, [writers], following.readers))
