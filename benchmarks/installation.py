"""An installation of the service for one run of measurements: servers, environment, and the process that measures."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from config.launcher.options import ROOT
from config.launcher.processes import Process, Program
from config.launcher.servers import temporary_servers

_KEYS = ("SESSION_KEYS", "ENCRYPTION_KEYS", "DIGEST_KEYS", "CURSOR_KEYS")
# Settings for measurements in which actions deliver to a server on this machine.
DELIVERING = {
    # As in production. Log lines in the readable format cost more time.
    "LOG_FORMAT": "json",
    "OUTBOUND_ALLOW_HTTP": "1",
    "OUTBOUND_PRIVATE_NETWORKS": "127.0.0.0/8",
    "RATE_LIMITS_ENABLED": "0",
}


@contextmanager
def installation(**settings: str) -> Iterator[dict[str, str]]:
    """Yield the environment of an installation with a migrated database, and with `settings` as further environment variables.

    Starts durable servers of PostgreSQL and Valkey unless DATABASE_URL and REDIS_URL are set. Migrates the database of
    DATABASE_URL, which may contain rows already.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as directory, temporary_servers(durable=True) as addresses:
        environment = {
            **{name: f"b1:{secrets.token_urlsafe(48)}" for name in _KEYS},
            **os.environ,
            **addresses,
            "INSECURE_HTTP": "1",
            # Settings of `make up` must not influence the measurement.
            "DATA_DIR": directory,
            "DJANGO_SETTINGS_MODULE": "config.settings.development",
            "REDIS_PREFIX": f"bench-{os.getpid()}",
            **settings,
        }
        subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, env=environment, check=True)
        yield environment


def run_module(module: str, *arguments: str, environment: Mapping[str, str]) -> int:
    """Run a module in a separate process, which is stopped if this process ends; return its exit status."""
    program = Program(name="measure", command=(sys.executable, "-m", module, *arguments), environment=environment)
    process = Process.start(program, output=sys.stdout.fileno())
    try:
        return process.popen.wait()
    finally:
        process.stop()
