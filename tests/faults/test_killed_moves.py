"""Commands of a move are killed by SIGKILL at their failpoints.

The next run of the command continues, and all rows of the tenant arrive.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from identity.models import AuditEntry, Tenant, TenantMove
from identity.moving.tables import carried_tables
from tests.faults.worker import ROOT, environment_of
from tests.identity.moving.installations import Target, other_installation, stopped
from tests.identity.moving.test_round_trip import with_every_row
from tests.identity.test_tenant_deletion import rows_that_name

pytestmark = pytest.mark.fault


@pytest.fixture
def target(committed_db: None) -> Iterator[Target]:
    with other_installation() as target:
        yield target


@pytest.fixture
def whole(tenant: Tenant) -> Tenant:
    """A stopped tenant that has a row of every model."""
    with_every_row(tenant)
    stopped(tenant)
    return tenant


@dataclass
class Commands:
    """Runs `manage.py tenants` in processes of their own, as an operator does."""

    directory: Path
    variables: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str) -> str:
        """Run a command that succeeds; return its output."""
        ended = self._ended(arguments)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def run_killed(self, failpoint: str, *arguments: str) -> None:
        """Run a command that is killed at a failpoint."""
        (self.directory / failpoint).touch()
        ended = self._ended(arguments)
        assert ended.returncode == -signal.SIGKILL, ended.stdout + ended.stderr
        assert not (self.directory / failpoint).exists()

    def _ended(self, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        environment = environment_of(self.directory, os.environ["REDIS_URL"]) | self.variables
        command = [sys.executable, "-W", "ignore", "manage.py", "tenants", *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


def of_the_target(target: Target, directory: Path) -> Commands:
    lists = {name: ",".join(f"{key}:{secret}" for key, secret in keys.items()) for name, keys in target.keys.items()}
    return Commands(directory, lists)


def counts(tenant_id: str) -> dict[str, int]:
    """Count the rows of each table except the audit log, which also has entries about the commands."""
    return {table.name: table.owned.rows(tenant_id).count() for table in carried_tables() if table.model is not AuditEntry}


def parts_done(tenant: Tenant) -> int:
    return TenantMove.objects.get(pk=tenant.pk).parts_done


def test_every_row_arrives_although_the_export_and_the_import_are_killed(whole: Tenant, target: Target, tmp_path: Path) -> None:
    place = (str(tmp_path / "archive"), "--journey-key", str(tmp_path / "key"))
    before = counts(whole.pk)
    here = Commands(tmp_path)
    export = ("export", whole.pk, "--to", *place)
    # Each run continues after the last part of the previous run.
    for done in (1, 2):
        here.run_killed("tenant_part_exported", *export)
        assert len(list((tmp_path / "archive" / "parts").iterdir())) == done
    here.run_killed("tenant_exported", *export)
    assert not (tmp_path / "archive" / "manifest.json").exists()
    assert "The archive is complete." in here.run(*export)

    there = of_the_target(target, tmp_path)
    with target.here():
        # The transaction of the first part is rolled back.
        there.run_killed("tenant_part_importing", "import", *place)
        assert parts_done(whole) == 0
        for done in (1, 2):
            there.run_killed("tenant_part_imported", "import", *place)
            assert parts_done(whole) == done
        assert "Counts and digests match those of the source." in there.run("import", *place)
        assert counts(whole.pk) == before

    receipt = here.run("hand-over", *place, "--yes").partition("--receipt ")[2].strip()
    with target.here():
        assert f"{whole.pk} is active." in there.run("open", whole.pk, "--receipt", receipt, "--yes")


def test_a_killed_removal_of_an_import_continues_and_leaves_no_row(whole: Tenant, target: Target, tmp_path: Path) -> None:
    place = (str(tmp_path / "archive"), "--journey-key", str(tmp_path / "key"))
    Commands(tmp_path).run("export", whole.pk, "--to", *place)
    there = of_the_target(target, tmp_path)
    with target.here():
        there.run_killed("tenant_part_imported", "import", *place)
        there.run_killed("tenant_chunk_removed", "remove", whole.pk, "--yes")
        assert Tenant.objects.get(pk=whole.pk).status == "arriving"
        there.run("remove", whole.pk, "--yes")
        assert set(rows_that_name(whole.pk)) <= {"identity_auditentry"}
        # The imported audit entries are deleted. The audit entries about the commands stay.
        assert set(AuditEntry.objects.filter(tenant_id=whole.pk).values_list("act", flat=True)) == {"manage.py tenants"}
        # The archive is whole, so the import can begin again.
        there.run("import", *place)
