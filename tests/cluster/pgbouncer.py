"""Debian's PgBouncer in front of the PostgreSQL server of the tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings

from config.launcher import spawn
from config.launcher.processes import Process, Program, wait_until_ready
from tests.cluster.patroni import answers
from tests.ports import free_port

_OPTIONS = ("listen_addr = 127.0.0.1", "unix_socket_dir =", "auth_type = trust", "max_client_conn = 1000", "default_pool_size = 150")


@contextmanager
def pgbouncer(mode: str, **options: object) -> Iterator[str]:
    """Run PgBouncer in a pool mode. Yield the `DATABASE_URL` that connects to the test database through PgBouncer."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("PgBouncer is not installed; run `make peers`")
    port, database = free_port(), settings.DATABASES["default"]
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as name:
        directory = Path(name)
        # PgBouncer may run under another account, which must be able to read these files.
        directory.chmod(0o755)
        (directory / "users").write_text(f'"{database["USER"]}" "{database["PASSWORD"]}"\n')
        (directory / "pgbouncer.ini").write_text("\n".join(_lines(mode, port, directory, options)) + "\n")
        log = directory / "log"
        command = (program, str(directory / "pgbouncer.ini"))
        # PgBouncer refuses to run as root, like PostgreSQL.
        started = Program("pgbouncer", command, is_ready=lambda: answers(("127.0.0.1", port)), identity=spawn.server_identity())
        with log.open("wb") as output:
            process = Process.start(started, output=output)
        try:
            wait_until_ready(process, log=log)
            yield f"postgresql://{database['USER']}@127.0.0.1:{port}/{database['NAME']}"
        finally:
            process.kill()


def _lines(mode: str, port: int, directory: Path, options: dict[str, object]) -> list[str]:
    database = settings.DATABASES["default"]
    server = {"host": database["HOST"], "port": database["PORT"], "user": database["USER"], "password": database["PASSWORD"]}
    return [
        "[databases]",
        "* = " + " ".join(f"{name}={value}" for name, value in server.items() if value),
        "[pgbouncer]",
        *_OPTIONS,
        *(f"listen_port = {port}", f"auth_file = {directory / 'users'}", f"pool_mode = {mode}"),
        *(f"{name} = {value}" for name, value in options.items()),
    ]
