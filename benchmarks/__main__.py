"""Runs every benchmark of the service, one after another. Starts private durable servers, unless the environment names other servers.

Run with `make bench`, or `.venv/bin/python -m benchmarks recording auth` for some of them. Compare only figures of the same run.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
from pathlib import Path

from config.launcher.servers import temporary_servers

ROOT = Path(__file__).resolve().parents[1]
# Name, further arguments, and what is measured.
MEASUREMENTS: dict[str, tuple[list[str], str]] = {
    "recording": ([], "recording, per user save"),
    "user_import": ([], "import of users"),
    "fast_paths": ([], "processor time that fast paths save"),
    "breached_passwords": ([], "one search in a list of breached passwords"),
    "user_search": ([], "searches in a tenant of a million users"),
    "stream": (["--scenarios", "latency", "--subjects", "ours, uvicorn"], "commit to first byte at a subscriber"),
    "traces": ([], "cost of traces, per update of a user"),
    "auth": ([], "tokens, compared with npm oidc-provider"),
    "deliveries": ([], "deliveries against a fast SCIM server"),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(MEASUREMENTS)}; all by default")
    options, further = parser.parse_known_args()
    names = options.names or list(MEASUREMENTS)
    if further and len(names) > 1:
        parser.error(f"{' '.join(further)}: further arguments go to one measurement only")
    unknown = sorted(set(names) - set(MEASUREMENTS))
    if unknown:
        parser.error(f"there is no measurement {', '.join(unknown)}")
    with temporary_servers(durable=True) as addresses:
        environment = {**_keys(), **os.environ, **addresses, "INSECURE_HTTP": "1", "DJANGO_SETTINGS_MODULE": "config.settings.development"}
        subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, env=environment, check=True)
        return max(_measure(name, further, environment) for name in names)


def _measure(name: str, further: list[str], environment: dict[str, str]) -> int:
    arguments, figure = MEASUREMENTS[name]
    print(f"\n{name}: {figure}", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments, *further]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _keys() -> dict[str, str]:
    names = ("SESSION_KEYS", "ENCRYPTION_KEYS", "DIGEST_KEYS", "CURSOR_KEYS")
    return {name: f"b1:{secrets.token_urlsafe(48)}" for name in names}


if __name__ == "__main__":
    sys.exit(main())
