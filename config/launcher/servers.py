"""Servers for tests and benchmarks: a new PostgreSQL and a new Valkey, or the servers at the URLs of the environment."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from config.launcher import postgres, valkey
from config.launcher.directories import make_private
from config.launcher.processes import Process, Program, is_running, wait_until_ready

VARIABLES = ("DATABASE_URL", "REDIS_URL")


@contextmanager
def temporary_servers(*, durable: bool = False) -> Iterator[dict[str, str]]:
    """Start a server for each of the variables `DATABASE_URL` and `REDIS_URL` that is not set.

    Yield both URLs by the names of the variables.

    After the `with` block, stop the started servers and remove their files.

    Without `durable` a crash of the machine may lose data. Call this function from the main thread: the servers end when the calling thread
    ends.
    """
    addresses = {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}
    with ExitStack() as stack:
        directory = _fresh_directory()
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        if "DATABASE_URL" not in addresses:
            stack.enter_context(_running(postgres.prepare(directory, durable=durable), directory))
            postgres.ensure_database(directory)
            addresses["DATABASE_URL"] = postgres.url_of(directory)
        if "REDIS_URL" not in addresses:
            stack.enter_context(_running(valkey.prepare(directory, durable=durable), directory))
            addresses["REDIS_URL"] = valkey.url_of(directory)
        yield addresses


@contextmanager
def _running(program: Program, directory: Path) -> Iterator[None]:
    log = directory / f"{program.name}.log"
    with log.open("ab") as output:
        process = Process.start(program, output=output)
    try:
        wait_until_ready(process, log=log)
        yield
    finally:
        process.stop()


def _fresh_directory() -> Path:
    """Make a directory named after this process; remove the directories of killed processes."""
    # The path is short, because the length of socket paths is limited. The account that runs PostgreSQL must be able to traverse this
    # directory.
    root = make_private(Path(tempfile.gettempdir()) / f"identity-runs-{os.geteuid()}")
    root.chmod(0o711)
    for old in root.iterdir():
        if old.name.isdigit() and not is_running(int(old.name), mentions="python"):
            shutil.rmtree(old, ignore_errors=True)
    directory = make_private(root / str(os.getpid()))
    directory.chmod(0o711)
    return directory
