"""The machine and the versions of a run, in general terms: no host names and no paths."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import psycopg
import redis
from django.conf import settings

from benchmarks.stream.programs import Programs
from events.log.numbering import open_connection


def described(programs: Programs) -> dict[str, str]:
    """Return the facts that a reader needs to compare two runs."""
    with open_connection() as database:
        postgres = database.info.server_version // 10000
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        told: dict[str, str] = client.info("server")
    return {
        "cores": str(os.cpu_count()),
        "processor": _processor(),
        "kernel": f"{platform.system()} {re.match(r'[0-9]+[.][0-9]+', platform.release())[0]}",  # type: ignore[index]  # it has one
        "python": platform.python_version(),
        "postgresql": str(postgres),
        "redis_protocol_server": f"{told.get('server_name', 'redis')} {told.get('valkey_version', told['redis_version'])}",
        "psycopg": psycopg.__version__,
        **{name: version(name) for name in ("django", "uvicorn", "daphne")},
        "nchan": _debian("libnginx-mod-nchan"),
        "django-eventstream": _locked("django-eventstream"),
        "reader": "C" if programs.reader_program else "Python",
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _debian(package: str) -> str:
    command = ["dpkg-query", "--show", "--showformat", "${Version}", package]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unknown"
    return said.stdout.strip() or "unknown"


def _locked(package: str) -> str:
    lock = (Path(__file__).parent / "requirements.lock").read_text()
    found = re.search(rf"^{re.escape(package)}==(\S+)", lock, re.MULTILINE)
    return found[1] if found else "unknown"
