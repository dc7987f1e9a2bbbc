"""A private PostgreSQL: one data directory, a Unix socket that only its owner can open, no TCP."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from config.launcher import spawn
from config.launcher.directories import make_private, socket_directory
from config.launcher.processes import NotReady, Program, is_running
from config.launcher.programs import MissingProgram, postgres_directories
from foundation.durable_files import directory_to_disk

DATABASE = "identity"
_PREVIOUS_SERVER_SECONDS = 60.0
# Durability is off only for test runs; the demo is as durable as production.
_FAST_AND_FORGETFUL = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


def prepare(data_dir: Path, *, durable: bool) -> Program:
    """Return the program of a server whose data is in `data_dir`/postgres. Create the cluster of the server if it does not exist.

    1. Choose the programs: the version that wrote the directory, otherwise the first that is found.
    2. Wait for a server that is shutting down; remove a stale pid file.
    3. Create the cluster in a directory beside its final path and then move it, so that a killed start leaves no partial cluster.

    Raises `MissingProgram` with every place that was searched, and `NotReady` if another server keeps using the directory.
    """
    identity = spawn.server_identity()
    if identity.account:
        # The account that runs PostgreSQL must be able to traverse this directory; the directories inside it stay private.
        data_dir.chmod(0o711)
    directory = data_dir / "postgres"
    programs = _programs_for(directory)
    _wait_for_previous(directory)
    if not (directory / "PG_VERSION").exists():
        _create(directory, programs, identity, durable=durable)
    sockets = socket_directory(data_dir, "postgres", account=identity.account)
    settings = ["listen_addresses=", "unix_socket_permissions=0700", "max_connections=200", "log_min_messages=fatal"]
    settings += [] if durable else _FAST_AND_FORGETFUL
    command = [str(programs / "postgres"), "-D", str(directory), "-k", str(sockets)]
    for setting in settings:
        command += ["-c", setting]
    return Program(
        name="postgres",
        command=tuple(command),
        is_ready=lambda: _says_ready(directory) and _answers(sockets),
        identity=identity,
        # SIGINT is a fast shutdown. With SIGTERM, PostgreSQL would wait for every client.
        stop_signal=signal.SIGINT,
        grace_seconds=30.0,
    )


def url_of(data_dir: Path, database: str = DATABASE) -> str:
    """Return the `DATABASE_URL` of the private server whose data is below `data_dir`."""
    sockets = socket_directory(data_dir, "postgres", account=spawn.server_identity().account)
    return _url(sockets, database)


def ensure_database(data_dir: Path, database: str = DATABASE) -> None:
    """Create `database` on the running server unless it exists."""
    with psycopg.connect(url_of(data_dir, "postgres"), autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))


def _url(sockets: Path, database: str) -> str:
    return f"postgresql://postgres@/{quote(database)}?host={quote(str(sockets))}"


def _says_ready(directory: Path) -> bool:
    # The eighth line of the file is the status of the server. Read it before the first connection: each connection that is too early would
    # add a refusal to the log of the server.
    try:
        return (directory / "postmaster.pid").read_text().splitlines()[7].strip() == "ready"
    except (FileNotFoundError, IndexError):
        return False


def _answers(sockets: Path) -> bool:
    try:
        psycopg.connect(_url(sockets, "postgres"), connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _programs_for(directory: Path) -> Path:
    places = postgres_directories()
    version_file = directory / "PG_VERSION"
    version = version_file.read_text().strip() if version_file.exists() else None
    for programs in places.found:
        if version is None or _version(programs) == version:
            return programs
    wanted = f"PostgreSQL {version} (which wrote {directory})" if version else "PostgreSQL"
    raise MissingProgram(f"No program of {wanted} was found. Tried: {'; '.join(places.tried)}. Or set DATABASE_URL.")


def _version(programs: Path) -> str:
    _, printed = spawn.run([str(programs / "postgres"), "--version"])
    return printed.rpartition(" ")[2].partition(".")[0].strip() if "PostgreSQL" in printed else ""


def _wait_for_previous(directory: Path) -> None:
    pid_file = directory / "postmaster.pid"
    deadline = time.monotonic() + _PREVIOUS_SERVER_SECONDS
    while pid_file.exists():
        lines = pid_file.read_text().split()
        if not lines or not is_running(int(lines[0]), mentions=str(directory)):
            # A killed server left this file; its process id may belong to another process by now.
            pid_file.unlink(missing_ok=True)
            return
        if time.monotonic() > deadline:
            raise NotReady(f"A PostgreSQL (process {lines[0]}) still uses {directory}; stop it and start again.")
        time.sleep(0.05)


def _create(directory: Path, programs: Path, identity: spawn.Identity, *, durable: bool) -> None:
    draft = directory.with_name(f"{directory.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    make_private(draft, account=identity.account)
    command = [str(programs / "initdb"), "-D", str(draft), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]
    command += [] if durable else ["--no-sync"]
    try:
        status, printed = spawn.run(command, identity=identity, environment={**os.environ, "LC_ALL": "C.UTF-8"})
    except OSError as error:
        status, printed = 1, str(error)
    if status != 0:
        shutil.rmtree(draft, ignore_errors=True)
        who = f" as account {identity.account}" if identity.account else ""
        raise NotReady(f"initdb failed{who} in {directory}: {' '.join(printed.split())[-300:]} Or set DATABASE_URL.")
    shutil.rmtree(directory, ignore_errors=True)
    draft.rename(directory)
    if durable:
        directory_to_disk(directory.parent)
