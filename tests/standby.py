"""Copies that pg_basebackup makes of a PostgreSQL server, and a standby with streaming replication. The server must use a Unix socket."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from config.launcher import postgres, spawn
from config.launcher.directories import make_private
from config.launcher.processes import Process, wait_until_ready
from config.launcher.programs import postgres_directories
from tests.deadlines import eventually


class Copy:
    """A copy of a PostgreSQL server in a separate directory. It is not started yet. `options` are options of pg_basebackup."""

    def __init__(self, primary_url: str, *options: str) -> None:
        # Use a directory with a short path, because the length of a socket path is limited. The account that runs PostgreSQL must be able
        # to enter the directory.
        self.directory = Path(tempfile.mkdtemp(prefix="copy-"))
        self.directory.chmod(0o711)
        self._identity = spawn.server_identity()
        make_private(self.data, account=self._identity.account)
        command = [str(postgres_directories().found[0] / "pg_basebackup"), "-d", primary_url, "-D", str(self.data), "-c", "fast"]
        status, printed = spawn.run([*command, "--no-sync", *options], identity=self._identity)
        assert status == 0, printed
        self.process: Process | None = None

    @property
    def data(self) -> Path:
        return self.directory / "postgres"

    def url(self, database: str) -> str:
        return postgres.url_of(self.directory, database)

    def start(self) -> None:
        program = postgres.prepare(self.directory, durable=False)
        with (self.directory / "log").open("ab") as output:
            self.process = Process.start(replace(program, is_ready=self._answers), output=output)
        wait_until_ready(self.process, log=self.directory / "log")

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()
            self.process = None

    def query(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url(database), autocommit=True, connect_timeout=5) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            self.query("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True


class Standby(Copy):
    """A running standby that replays the commits of its primary. A test can pause the replay."""

    def __init__(self, primary_url: str) -> None:
        super().__init__(primary_url, "-R")
        self.start()

    def pause(self) -> None:
        self.query("SELECT pg_wal_replay_pause()")
        eventually(lambda: self.query("SELECT pg_get_wal_replay_pause_state()") == [("paused",)], seconds=30)

    def resume(self) -> None:
        self.query("SELECT pg_wal_replay_resume()")


@contextmanager
def standby_of(primary_url: str) -> Iterator[Standby]:
    """Run a standby of the server at `primary_url` while the block runs, and remove it at the end."""
    made = Standby(primary_url)
    try:
        yield made
    finally:
        made.close()
