"""Processes are killed at every step between a change and its position, and during pruning. No event is lost, repeated or reordered."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.deadlines import eventually
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds
from tests.faults.proxy import Proxy
from tests.faults.world import ROOT, Seeded, World

pytestmark = pytest.mark.fault

KILLS = 2
OLD_EVENTS = 120
# Prunes in chunks of 50, so that the log has several chunks.
_PRUNE = "import django; django.setup(); from events.log import retention; retention.CHUNK = 50; list(retention.prune({!r}))"


@pytest.mark.parametrize("failpoint", ["recording", "recorded", "numbering", "numbered"])
def test_no_event_is_lost_or_repeated_when_a_writer_is_killed_at_a_step(
    failpoint: str, world: World, following: Following, tmp_path: Path
) -> None:
    tenant = world.tenant()
    with world.web() as web, ExitStack() as stack:
        following.add(*(Follower(f"stream {number}", tenant, lambda: web.address) for number in range(2)))
        groups = []
        for _ in range(KILLS):
            writers = stack.enter_context(world.writers(tenant, 2, variables={"FAILPOINTS_DIR": str(tmp_path)}))
            groups.append(writers)
            eventually(partial(writers.have_made, 10), seconds=60)
            (tmp_path / failpoint).touch()
            eventually(lambda: not (tmp_path / failpoint).exists(), seconds=60)
            writers.stop()
            assert [process.returncode for process in writers.processes].count(-signal.SIGKILL) == 1
        eventually(lambda: world.is_numbered(tenant), seconds=20)
        following.all_at(world.head(tenant), seconds=60)
        following.stop()
    assert_never_failed(following)
    assert_holds(world.history(tenant, groups, following.readers))


@pytest.mark.parametrize("failpoint", ["numbering", "numbered"])
def test_no_event_is_lost_or_repeated_when_a_web_process_is_killed_during_numbering(
    failpoint: str, world: World, following: Following, tmp_path: Path
) -> None:
    tenant = world.tenant()
    with Proxy() as balancer, world.web() as survivor, ExitStack() as stack:
        following.add(*(Follower(f"stream {number}", tenant, lambda: balancer.address) for number in range(4)))
        writers = stack.enter_context(world.writers(tenant, 2, variables={"EVENTS_NUMBERER_ENABLED": "0"}))
        for _ in range(KILLS):
            victim = stack.enter_context(world.web(FAILPOINTS_DIR=str(tmp_path)))
            balancer.targets = [victim.address, survivor.address]
            (tmp_path / failpoint).touch()
            eventually(lambda: not (tmp_path / failpoint).exists(), seconds=60)
            balancer.targets = [survivor.address]
        writers.stop()
        eventually(lambda: world.is_numbered(tenant), seconds=20)
        following.all_at(world.head(tenant), seconds=60)
        following.stop()
    assert_never_failed(following)
    assert_holds(world.history(tenant, [writers], following.readers))


@pytest.mark.parametrize("failpoint", ["pruning", "pruned"])
def test_killed_pruning_leaves_a_log_without_a_gap_and_resumes(failpoint: str, world: World, tmp_path: Path) -> None:
    tenant = world.tenant()
    world.lengthen_log(tenant, OLD_EVENTS, padding=10)
    world.query("UPDATE events_logentry SET recorded_at = recorded_at - interval '400 days' WHERE tenant_id = %s", tenant.id)
    kills = 0
    while True:
        (tmp_path / failpoint).touch()
        done = pruned(world, tenant, tmp_path)
        assert_whole(world, tenant)
        if done.returncode != -signal.SIGKILL:
            break
        kills += 1
        # At `pruning`, the process is killed before it commits a chunk. Another run with this failpoint would be killed at the same chunk
        # again. So end with a run without the failpoint.
        if failpoint == "pruning":
            (tmp_path / failpoint).unlink(missing_ok=True)
            done = pruned(world, tenant, tmp_path)
            break
    assert done.returncode == 0, done.stderr[-3000:]
    assert kills
    assert_whole(world, tenant)
    [(floor, position)] = world.query("SELECT floor, position FROM events_head WHERE tenant_id = %s", tenant.id)
    assert floor == position == tenant.base + OLD_EVENTS


def pruned(world: World, tenant: Seeded, failpoints: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | world.environment | {"FAILPOINTS_DIR": str(failpoints)}
    command = [sys.executable, "-W", "ignore", "-c", _PRUNE.format(tenant.id)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


def assert_whole(world: World, tenant: Seeded) -> None:
    """Assert that the log has exactly the positions above its floor, each with one event."""
    [(floor, head)] = world.query("SELECT floor, position FROM events_head WHERE tenant_id = %s", tenant.id)
    rows = world.query(
        "SELECT l.position FROM events_logentry l JOIN events_event e ON e.id = l.event_id WHERE l.tenant_id = %s ORDER BY 1", tenant.id
    )
    assert [position for (position,) in rows] == list(range(floor + 1, head + 1))
    [(bodies,)] = world.query("SELECT count(*) FROM events_event WHERE tenant_id = %s", tenant.id)
    assert bodies == head - floor
