"""Hints are optional. If Redis refuses every hint, polling still finds every event, but later."""

from __future__ import annotations

import statistics

import pytest
import requests

from tests.conformance.web_process import WebProcess
from tests.deadlines import eventually
from tests.faults.following import Follower, Following, latencies
from tests.faults.invariants import assert_holds
from tests.faults.world import World

pytestmark = pytest.mark.fault

# The maximum interval of polling, plus the delay of a busy machine.
_POLL_SECONDS = 1.0
_SLACK_SECONDS = 1.5


def _found_by_poll(web: WebProcess) -> float:
    """Return how often polling has found events that no hint had announced before."""
    page = requests.get(f"http://127.0.0.1:{web.address[1]}/metrics", headers={"Host": "localhost"}, timeout=10)
    [line] = [line for line in page.text.splitlines() if line.startswith("hint_missed_total ")]
    return float(line.split()[1])


def test_without_hints_no_event_is_lost_and_polling_limits_the_delay(world: World, following: Following) -> None:
    tenant = world.tenant()
    # Only writers number events, so this process finds events only through hints and by polling.
    with world.web(EVENTS_NUMBERER_ENABLED="0") as web, world.writers(tenant, 1, think=0.1) as writers:
        following.add(Follower("live", tenant, lambda: web.address))
        eventually(lambda: writers.have_made(40) and following.followers[0].reached.position > tenant.base + 30, seconds=60)
        told = world.head(tenant).position
        world.allow_hints(allowed=False)
        found = _found_by_poll(web)
        try:
            refused_after = world.head(tenant).position
            eventually(lambda: following.followers[0].reached.position > refused_after + 40, seconds=60)
            writers.stop()
            eventually(lambda: world.is_numbered(tenant))
            following.all_at(world.head(tenant))
            assert _found_by_poll(web) >= found + 5
        finally:
            world.allow_hints(allowed=True)
        following.stop()
    recorded = world.recorded(tenant)
    hinted = latencies(following.followers, {position: moment for position, moment in recorded.items() if position <= told})
    polled = latencies(following.followers, {position: moment for position, moment in recorded.items() if position > refused_after})
    assert max(polled) < _POLL_SECONDS + _SLACK_SECONDS
    # The first events with a hint were replayed from the log, which takes longer. Most events were not replayed, so compare medians.
    assert statistics.median(hinted) < statistics.median(polled)
    assert_holds(world.history(tenant, [writers], following.readers))
