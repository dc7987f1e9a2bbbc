"""Clusters that the tests may break. At the end of every test, all servers of the cluster run again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.launcher.peers import place_of
from tests.cluster.world import ClusterWorld
from tests.faults.following import Following


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder, so that `make test` skips the folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.fault)


def _require_programs() -> None:
    missing = [name for name in ("etcd", "pgbouncer") if shutil.which(name) is None]
    if not (place_of("patroni") / "bin" / "patroni").exists():
        missing.append("patroni")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; run `make peers`")


@pytest.fixture(scope="module")
def safe_world() -> Iterator[ClusterWorld]:
    """A service on a cluster with synchronous replication."""
    _require_programs()
    made = ClusterWorld(is_synchronous=True)
    yield made
    made.close()


@pytest.fixture(scope="module")
def fast_world() -> Iterator[ClusterWorld]:
    """A service on a cluster with asynchronous replication, which can lose the latest commits."""
    _require_programs()
    made = ClusterWorld(is_synchronous=False)
    yield made
    made.close()


@pytest.fixture
def following() -> Iterator[Following]:
    """Subscribers that are stopped after the test."""
    with Following() as running:
        yield running
