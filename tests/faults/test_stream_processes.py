"""Web processes are killed, restarted one after the other, and restarted with two hundred open streams."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial

import pytest

from tests.conformance.web_process import WebProcess
from tests.deadlines import eventually
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds, leaks
from tests.faults.proxy import Proxy
from tests.faults.world import Seeded, World

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]

LEASE_SECONDS = 3.0
LIMIT = 6
ROUNDS = int(os.environ.get("FAULT_ROUNDS", "3"))
STORM_STREAMS = 200


def _slots_within_limit(world: World, tenant: Seeded, until: float) -> int:
    most = 0
    while time.monotonic() < until:
        most = max(most, world.slots(tenant))
        time.sleep(0.02)
    return most


def test_the_slots_of_a_killed_process_are_freed_without_exceeding_the_limit(world: World, following: Following) -> None:
    tenant = world.tenant()
    limit = {"EVENTS_MAX_CONNECTIONS_PER_TENANT": str(LIMIT), "EVENTS_LEASE_SECONDS": str(LEASE_SECONDS)}
    with world.two_webs(**limit) as webs, Proxy(*(web.address for web in webs)) as balancer:
        following.add(*(Follower(f"stream {number}", tenant, lambda: balancer.address) for number in range(LIMIT)))
        following.all_open(seconds=60)
        assert world.slots(tenant) == LIMIT
        # Disconnected clients reconnect at once, to the other process. It refuses these clients until the leases of the killed process
        # expire.
        killed = time.monotonic()
        webs[0].kill()
        most = _slots_within_limit(world, tenant, killed + LEASE_SECONDS * 0.5)
        eventually(lambda: all(follower.open_now for follower in following.followers), seconds=LEASE_SECONDS + 10, pause=0.01)
        waited = time.monotonic() - killed
        following.stop()
    assert most <= LIMIT
    assert waited < LEASE_SECONDS + 3.0
    assert following.statuses[403] > 0, "the slots of a killed process are held until its leases run out"
    assert_never_failed(following)


def test_a_rolling_restart_under_load_neither_loses_nor_duplicates_an_event(world: World, following: Following) -> None:
    tenant = world.tenant()
    with ExitStack() as stack, Proxy() as balancer:
        webs = [stack.enter_context(world.web()) for _ in range(2)]
        balancer.targets = [web.address for web in webs]
        followers = [Follower(f"stream {number}", tenant, lambda: balancer.address) for number in range(24)]
        following.add(*followers)
        following.all_open(seconds=60)
        with world.writers(tenant, 2, think=0.02) as writers:
            eventually(lambda: writers.have_made(20), seconds=60)
            restarted = time.monotonic()
            for old in webs:
                new = stack.enter_context(world.web())
                balancer.targets.append(new.address)
                balancer.targets.remove(old.address)
                old.terminate()
                old.wait(within=30)
            following.all_open(seconds=30)
            writers.stop()
            eventually(lambda: world.is_numbered(tenant))
        following.all_at(world.head(tenant))
        following.stop()
    assert_never_failed(following)
    assert all(follower.errors["connection"] == 0 for follower in followers), "a planned restart breaks no connection"
    again = [moment for follower in followers for moment in follower.attempts if moment > restarted]
    # Each process closes each of its streams once, and the processes never close all streams at the same time.
    assert len(again) <= 2 * len(followers)
    per_half_second = Counter(int(moment * 2) for moment in again)
    assert max(per_half_second.values(), default=0) <= len(followers) * 0.75
    assert_holds(world.history(tenant, [writers], following.readers))


def test_two_hundred_streams_continue_after_many_restarts(world: World, following: Following) -> None:
    tenant = world.tenant()
    with ExitStack() as stack, Proxy() as balancer:
        balancer.targets = [stack.enter_context(world.web(EVENTS_DRAIN_SECONDS="1")).address]
        running: WebProcess | None = None
        following.add(
            *(Follower(f"stream {number}", tenant, lambda: balancer.address, keep_bytes=False) for number in range(STORM_STREAMS))
        )
        following.all_open(seconds=60)
        backends = world.backends()
        with world.writers(tenant, 1, think=0.05) as writers:
            for turn in range(3):
                new = stack.enter_context(world.web(EVENTS_DRAIN_SECONDS="1"))
                balancer.targets = [new.address]
                balancer.reset_all()
                if running is not None and turn % 2:
                    running.kill()
                running = new
                following.all_open(seconds=60)
            writers.stop()
            eventually(lambda: world.is_numbered(tenant))
        following.all_at(world.head(tenant), seconds=60)
        following.stop()
        eventually(lambda: world.slots(tenant) == 0, seconds=LEASE_SECONDS + 5)
        # One process ran when `backends` was counted. Since then, three processes were started and one was killed. The number of database
        # connections grows with the number of processes. It does not grow with the number of streams.
        assert leaks({"backends": 4 * backends}, {"backends": world.backends()}, {"backends": 30}) == []
    assert_never_failed(following)
    assert_holds(world.history(tenant, [writers], following.readers))


def test_random_kills_of_web_processes_and_writers_never_lose_or_repeat_an_event(world: World, following: Following) -> None:
    tenant = world.tenant()
    with ExitStack() as stack, Proxy() as balancer:
        webs = [stack.enter_context(world.web()) for _ in range(2)]
        balancer.targets = [web.address for web in webs]
        following.add(*(Follower(f"stream {number}", tenant, lambda: balancer.address) for number in range(6)))
        groups = []
        for _ in range(ROUNDS):
            writers = stack.enter_context(world.writers(tenant, 2, think=0.01))
            groups.append(writers)
            eventually(partial(writers.have_made, world.random.randrange(20, 60)), seconds=60)
            victim = world.random.randrange(2)
            webs[victim].kill()
            writers.kill_one()
            webs[victim] = stack.enter_context(world.web())
            balancer.targets = [web.address for web in webs]
            writers.stop()
        # The next numberer gives positions to the committed events of a killed writer.
        eventually(lambda: world.is_numbered(tenant), seconds=20)
        following.all_at(world.head(tenant), seconds=60)
        following.stop()
    assert_never_failed(following)
    assert_holds(world.history(tenant, groups, following.readers))
