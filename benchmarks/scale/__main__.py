"""Measure how costs grow with tenants, log, streams and web processes: `make bench-scale`.

`--quick` only checks that the benchmark runs. `--document` writes docs/performance.md.

Starts PostgreSQL and Valkey unless DATABASE_URL and REDIS_URL name others. A complete run takes about half an hour and 15 GB of disk.
Compare only figures of the same run.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile

from benchmarks.scale.options import read_options
from config.launcher.options import ROOT
from config.launcher.processes import Process, Program
from config.launcher.servers import temporary_servers

_KEYS = ("SESSION_KEYS", "ENCRYPTION_KEYS", "DIGEST_KEYS", "CURSOR_KEYS")


def main() -> int:
    """Return the exit status of the measurement, which runs in a process of its own with our settings."""
    read_options(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as directory, temporary_servers(durable=True) as addresses:
        environment = {
            **{name: f"b1:{secrets.token_urlsafe(48)}" for name in _KEYS},
            **os.environ,
            **addresses,
            "INSECURE_HTTP": "1",
            "DATA_DIR": directory,
            "DJANGO_SETTINGS_MODULE": "config.settings.development",
            # As in production. Log lines in the readable format cost more time.
            "LOG_FORMAT": "json",
            "REDIS_PREFIX": f"bench-{os.getpid()}",
            "OUTBOUND_ALLOW_HTTP": "1",
            "OUTBOUND_PRIVATE_NETWORKS": "127.0.0.0/8",
            "RATE_LIMITS_ENABLED": "0",
        }
        subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, env=environment, check=True)
        command = [sys.executable, "-m", "benchmarks.scale.measure", directory, *sys.argv[1:]]
        process = Process.start(Program(name="measure", command=tuple(command), environment=environment), output=sys.stdout.fileno())
        try:
            return process.popen.wait()
        finally:
            process.stop()


if __name__ == "__main__":
    sys.exit(main())
