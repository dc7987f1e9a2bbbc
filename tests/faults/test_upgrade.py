"""An upgrade under load: processes of an earlier commit and of this checkout use one database, before and after its migration."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.deadlines import eventually
from tests.faults.following import Follower, Following, assert_never_failed
from tests.faults.invariants import assert_holds
from tests.faults.proxy import Proxy
from tests.faults.worker import ROOT, Worker, recorded
from tests.faults.world import Seeded, World

pytestmark = [pytest.mark.fault, pytest.mark.timeout(1500)]

# The commit from which the test upgrades. Newer migrations add tables, and add columns to the tables of users and of log heads.
# Some changes of tables are made in two versions ("docs/how-to/upgrade.md"). After such a change, choose a commit of the first version.
EARLIER = "1f68092a57d1ffc69536793c2fb80adbcccbcb49"
FOLLOWERS = 12
KEYS, ROUNDS = 12, 20
_RESTORE = (
    "import os, psycopg; from config.schema.restoring import restore_schema;"
    " restore_schema(psycopg.connect(os.environ['DATABASE_URL'], autocommit=True))"
)


class EarlierWorld(World):
    """A world whose schema and processes are those of an earlier version, until `source` changes."""

    def __init__(self, source: Path) -> None:
        self.source = source
        super().__init__()

    @contextmanager
    def worker(self, directory: Path) -> Iterator[Worker]:
        times = {"DELIVERY_LEASE_SECONDS": "10", "DELIVERY_RETRY_DELAYS": ",".join(["0.2"] * 50), "BREAKER_FAILURES": "0"}
        url, redis_url = self.environment["DATABASE_URL"], self.environment["REDIS_URL"]
        worker = Worker(directory, redis_url, concurrency=2, source=self.source, DATABASE_URL=url, **times)
        try:
            yield worker
        finally:
            worker.kill()

    def is_delivered(self, stream_id: str) -> bool:
        return not self.query("SELECT 1 FROM provisioning_lane WHERE stream_id = %s LIMIT 1", stream_id)

    def migrate(self) -> None:
        """Run `manage.py migrate` of the present source."""
        self._run("manage.py", "migrate", "--verbosity", "0")

    def assert_deliveries_sound(self, stream_id: str, directory: Path, *, after: int) -> None:
        """Check the invariants of the deliveries of a stream. The stream began after the position `after` of the log. Its workers recorded
        the deliveries in `directory`.
        """
        self._run("-m", "tests.faults.judging_deliveries", stream_id, str(directory), str(after))

    def columns(self) -> int:
        return int(self.query("SELECT count(*) FROM information_schema.columns WHERE table_schema = 'public'")[0][0])

    def _make_schema(self) -> None:
        self._run("-c", _RESTORE)
        self.migrate()


@pytest.fixture(scope="module")
def earlier_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the earlier commit."""
    archived = subprocess.run(["git", "archive", EARLIER], cwd=ROOT, capture_output=True, check=False)
    if archived.returncode != 0:
        pytest.skip(f"this clone does not have commit {EARLIER}, from which the test upgrades; `git fetch --unshallow` gets it")
    directory = tmp_path_factory.mktemp("earlier")
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as archive:
        archive.extractall(directory, filter="data")
    return directory


@pytest.fixture
def earlier_world(earlier_source: Path) -> Iterator[EarlierWorld]:
    made = EarlierWorld(earlier_source)
    yield made
    made.close()


def _accepted(directory: Path, tenant: Seeded) -> int:
    keys = [f"user:{tenant.id}-{number}" for number in range(KEYS)]
    return len({(line["key"], line["number"]) for line in recorded(directory, step="end", keys=keys)})


def _processes(directory: Path, tenant: Seeded) -> set[int]:
    return {line["pid"] for line in recorded(directory) if tenant.id in line["key"]}


def _records_of(directory: Path, tenant: Seeded) -> Path:
    """Return a directory with only the records of this tenant, because the invariants concern one stream."""
    own = directory / tenant.id
    own.mkdir()
    lines = (directory / "events").read_text().splitlines(keepends=True)
    (own / "events").write_text("".join(line for line in lines if tenant.id in line))
    return own


def test_an_upgrade_under_load_loses_no_event_and_disconnects_no_reader(
    earlier_world: EarlierWorld, following: Following, directory: Path
) -> None:
    world = earlier_world
    tenant, *lanes = [world.tenant() for _ in range(4)]
    streams: dict[str, Seeded] = {}

    def deliver(of: Seeded) -> None:
        streams[world.append(of, keys=KEYS, rounds=ROUNDS)] = of

    with ExitStack() as stack, Proxy() as balancer:
        # 1. Only the earlier version runs.
        webs = [stack.enter_context(world.web()) for _ in range(2)]
        balancer.targets = [web.address for web in webs]
        old_worker = stack.enter_context(world.worker(directory))
        followers = [Follower(f"stream {number}", tenant, lambda: balancer.address) for number in range(FOLLOWERS)]
        following.add(*followers)
        following.all_open(seconds=120)
        old_writers = stack.enter_context(world.writers(tenant, 1, think=0.02))
        eventually(partial(old_writers.have_made, 10), seconds=120)
        deliver(lanes[0])
        eventually(lambda: _accepted(directory, lanes[0]), seconds=120)

        # 2. The migration runs. The earlier version then works on the new tables.
        columns = world.columns()
        world.source = ROOT
        world.migrate()
        assert world.columns() > columns
        eventually(partial(old_writers.have_made, old_writers.count + 10), seconds=120)
        eventually(lambda: _accepted(directory, lanes[0]) == KEYS * ROUNDS, seconds=120)

        # 3. Both versions run.
        webs.append(stack.enter_context(world.web()))
        balancer.targets.append(webs[-1].address)
        old_processes = set(old_worker.children())
        new_worker = stack.enter_context(world.worker(directory))
        new_writers = stack.enter_context(world.writers(tenant, 1, think=0.02))
        deliver(lanes[1])
        eventually(partial(new_writers.have_made, 20), seconds=120)
        eventually(partial(old_writers.have_made, old_writers.count + 10), seconds=120)
        eventually(lambda: _accepted(directory, lanes[1]) == KEYS * ROUNDS, seconds=120)

        # 4. The earlier version ends, one process after the other.
        deliver(lanes[2])
        assert old_worker.stop() == 0
        for old in webs[:2]:
            balancer.targets.remove(old.address)
            old.terminate()
            old.wait(within=60)
            webs.append(stack.enter_context(world.web()))
            balancer.targets.append(webs[-1].address)
        old_writers.stop()
        following.all_open(seconds=120)
        eventually(partial(new_writers.have_made, new_writers.count + 10), seconds=120)
        eventually(lambda: _accepted(directory, lanes[2]) == KEYS * ROUNDS, seconds=120)
        new_writers.stop()
        eventually(lambda: world.is_numbered(tenant), seconds=60)
        following.all_at(world.head(tenant), seconds=120)
        following.stop()
        eventually(lambda: all(world.is_delivered(stream) for stream in streams), seconds=60)
    assert_never_failed(following)
    assert all(follower.errors["connection"] == 0 for follower in followers), "a process ended without closing its streams"
    assert_holds(world.history(tenant, [old_writers, new_writers], following.readers))
    for stream, owner in streams.items():
        world.assert_deliveries_sound(stream, _records_of(directory, owner), after=owner.base)
    both = _processes(directory, lanes[1])
    assert both & old_processes, "no process of the earlier version delivered"
    assert both - old_processes, "no process of this version delivered"
    assert not new_worker.log.count("Traceback")
