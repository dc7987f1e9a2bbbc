"""`docs/how-to/back-up-and-restore.md`: a base backup and archived WAL restore a point in time. The commands of the page are executed.

The test replaces system accounts, directories and the start of servers. In place of the program `identity-manage`, it runs `manage.py`.
Everything else is executed as it is written on the page.
"""

from __future__ import annotations

import http.client
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from config.launcher import postgres, spawn
from config.launcher.directories import make_private
from config.launcher.programs import postgres_directories
from tests.conformance.web_process import WebProcess
from tests.deadlines import eventually
from tests.faults.following import PATH, Follower, Following
from tests.faults.invariants import Place, assert_holds
from tests.faults.worker import ROOT
from tests.faults.world import Seeded, World
from tests.faults.writers import Writers

pytestmark = [pytest.mark.fault, pytest.mark.timeout(900)]

PAGE = ROOT / "docs/how-to/back-up-and-restore.md"
_BLOCK = re.compile(r"^( *)```sh\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_POINT = re.compile(r"recovery_target_time = '[^']+'")


def blocks(containing: str) -> list[str]:
    """Return the code blocks of the page that contain this text, without their indentation."""
    found = [re.sub(f"^{indent}", "", content, flags=re.MULTILINE) for indent, content in _BLOCK.findall(PAGE.read_text())]
    return [block for block in found if containing in block]


class ArchivingWorld(World):
    """A world whose server is backed up, lost, and replaced by a restored server."""

    def __init__(self) -> None:
        super().__init__()
        self.backup = self.directory / "backup"
        make_private(self.backup, account=spawn.server_identity().account)

    def follow(self, block: str, **replaced: str) -> None:
        """Execute the commands of a block with the account of the servers. The test restarts servers itself."""
        text = block.replace("sudo -u postgres ", "").replace("/srv/backup", str(self.backup))
        for old, new in replaced.items():
            text = text.replace(old, new)
        text = re.sub(r"^(systemctl|pg_ctl) .*\n", "", text, flags=re.MULTILINE)
        programs = os.pathsep.join([str(postgres_directories().found[0]), os.environ["PATH"]])
        host = postgres.url_of(self.database_home).partition("host=")[2].replace("%2F", "/")
        environment = {**os.environ, "PATH": programs, "PGHOST": host, "PGUSER": "postgres"}
        status, printed = spawn.run(["sh", "-e", "-c", text], identity=spawn.server_identity(), environment=environment)
        assert status == 0, printed

    def archive_everything(self) -> None:
        [(segment,)] = self.query("SELECT pg_walfile_name(pg_switch_wal())")
        eventually(lambda: (self.backup / "wal" / segment).exists(), seconds=60)

    def restore(self, point: str) -> None:
        """Restore the backup up to the point, with the commands of the page, and use the restored server."""
        place = Path(tempfile.mkdtemp(prefix="restored-"))
        place.chmod(0o711)
        account = spawn.server_identity().account
        if account:
            shutil.chown(place, account)
        [block] = blocks("recovery.signal")
        text, count = _POINT.subn(f"recovery_target_time = '{point}'", block)
        assert count == 1
        self.follow(text.replace("/srv/restored", str(place / "postgres")))
        place.chmod(0o711)
        self.postgres.stop()
        self._forget_restored()
        self.database_home = place
        self.start_postgres()
        eventually(lambda: self.query("SELECT pg_is_in_recovery()") == [(False,)], seconds=120)

    def close(self) -> None:
        super().close()
        self._forget_restored()

    def _forget_restored(self) -> None:
        if self.database_home != self.directory:
            shutil.rmtree(self.database_home, ignore_errors=True)


class Disaster:
    """A world with a backup, the log as it was at a point in time, and a cursor from a later time.

    The restore to the point in time loses all later events.
    """

    def __init__(self, world: ArchivingWorld) -> None:
        self.world = world
        for block in blocks("archive_mode = 'on'\" -c \"ALTER SYSTEM SET archive_timeout"):
            world.follow(block)
        world.restart_postgres()
        self.tenant = world.tenant()
        with world.web() as web, Following() as following:
            follower = Follower("reader", self.tenant, lambda: web.address)
            following.add(follower)
            self.writers = self._write(following, during_backup=True)
            self.before = world.head(self.tenant)
            self.log = self._log()
            [(self.point,)] = world.query("SELECT clock_timestamp()::text")
            self._write(following)
            self.lost_cursor = follower.last_offset
            self.lost = world.head(self.tenant)
        world.archive_everything()

    def _write(self, following: Following, *, during_backup: bool = False) -> Writers:
        with self.world.writers(self.tenant, 1) as writers:
            eventually(partial(writers.have_made, 10), seconds=120)
            if during_backup:
                [block] = blocks("pg_basebackup")
                self.world.follow(block)
            eventually(partial(writers.have_made, writers.count + 10), seconds=120)
            writers.stop()
        eventually(lambda: self.world.is_numbered(self.tenant), seconds=60)
        following.all_at(self.world.head(self.tenant), seconds=60)
        return writers

    def _log(self) -> list[tuple[object, ...]]:
        return self.world.query(
            "SELECT l.position, e.body FROM events_logentry l JOIN events_event e ON e.id = l.event_id WHERE l.tenant_id = %s ORDER BY 1",
            self.tenant.id,
        )

    def assert_restored(self) -> None:
        """Assert that the restored database has the state of the point in time."""
        assert self.lost.position > self.before.position
        assert self.world.head(self.tenant) == self.before
        assert self._log() == self.log
        assert_holds(self.world.history(self.tenant, [self.writers], []))


@pytest.fixture(scope="module")
def disaster() -> Iterator[Disaster]:
    world = ArchivingWorld()
    try:
        yield Disaster(world)
    finally:
        world.close()


def status_of(web: WebProcess, tenant: Seeded, offset: str) -> int:
    """Request the stream with this cursor, and return the status."""
    client = http.client.HTTPConnection(*web.address, timeout=30)
    try:
        client.request("GET", PATH, headers={"Host": tenant.host, "Authorization": f"Bearer {tenant.token}", "Last-Event-ID": offset})
        return client.getresponse().status
    finally:
        client.close()


def written(world: ArchivingWorld, tenant: Seeded) -> Place:
    """Make ten transactions, and return the end of the log after them."""
    with world.writers(tenant, 1, count=10) as writers:
        writers.wait()
    eventually(lambda: world.is_numbered(tenant), seconds=60)
    return world.head(tenant)


@pytest.mark.parametrize("is_confirmed", [True, False], ids=["with step 4", "without step 4"])
def test_a_restore_to_a_point_in_time_keeps_earlier_commits_and_refuses_later_cursors(disaster: Disaster, is_confirmed: bool) -> None:
    world, tenant = disaster.world, disaster.tenant
    world.restore(disaster.point)
    disaster.assert_restored()
    for block in blocks("migrate --check"):
        assert block.strip() == "identity-manage migrate --check"
    world._run("manage.py", "migrate", "--check")
    if is_confirmed:
        [block] = blocks("events restored --all")
        assert block.strip() == "identity-manage events restored --all"
        world._run("manage.py", "events", "restored", "--all", answer="yes\n")
        assert world.head(tenant).epoch > disaster.lost.epoch

    with world.web() as web:
        if is_confirmed:
            assert status_of(web, tenant, disaster.lost_cursor) == 410
        end = written(world, tenant)
        eventually(lambda: status_of(web, tenant, disaster.lost_cursor) == 410, seconds=30)

    assert end.epoch > disaster.lost.epoch
    assert end.position > disaster.before.position
    for block in blocks("RESET recovery_target_time"):
        world.follow(block)
    world.restart_postgres()
    assert world.query("SHOW recovery_target_time") == [("",)]
    assert world.query("SHOW archive_mode") == [("on",)]
