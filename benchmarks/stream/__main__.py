"""Measure the event stream and other servers in one run: `make bench-stream`, or this module with options.

Starts PostgreSQL and Valkey unless DATABASE_URL and REDIS_URL name others, migrates, measures, and writes
the figures as JSON and, on request, as the tables and the plot of the documentation. Compare only figures of the same run.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile

from benchmarks.stream.options import read_options
from config.launcher.options import ROOT
from config.launcher.processes import Process, Program
from config.launcher.servers import temporary_servers

_KEYS = ("SESSION_KEYS", "ENCRYPTION_KEYS", "DIGEST_KEYS", "CURSOR_KEYS")


def main() -> int:
    """Return the exit status of the measurement, which runs in a process of its own with our settings."""
    read_options(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="bench-stream-") as directory, temporary_servers(durable=True) as addresses:
        environment = {
            **{name: f"b1:{secrets.token_urlsafe(48)}" for name in _KEYS},
            **os.environ,
            **addresses,
            "INSECURE_HTTP": "1",
            # Settings of `make up` must not influence the measurement.
            "DATA_DIR": directory,
            "DJANGO_SETTINGS_MODULE": "config.settings.development",
            "REDIS_PREFIX": f"bench-{os.getpid()}",
            # No worker runs.
            "DELIVERY_NUDGES_ENABLED": "0",
        }
        subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, env=environment, check=True)
        command = [sys.executable, "-m", "benchmarks.stream.measure", directory, *sys.argv[1:]]
        process = Process.start(Program(name="measure", command=tuple(command), environment=environment), output=sys.stdout.fileno())
        try:
            return process.popen.wait()
        finally:
            process.stop()


if __name__ == "__main__":
    sys.exit(main())
