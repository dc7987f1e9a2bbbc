"""A real server for commands that read over HTTP. The commands run as separate processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pytest_django.plugin import DjangoDbBlocker

from identity.models import Tenant
from tests.conformance.target import Target, make_target
from tests.conformance.web_process import WebProcess, web_process

ROOT = Path(__file__).resolve().parents[3]
HEARTBEAT_SECONDS = 0.5


@pytest.fixture(scope="session")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    """A server with short heartbeats and short pauses between connections."""
    with django_db_blocker.unblock():
        with web_process("uvicorn", EVENTS_HEARTBEAT_SECONDS=str(HEARTBEAT_SECONDS), EVENTS_RETRY_MS="100") as running:
            yield running


@pytest.fixture
def target(web: WebProcess, tenant: Tenant) -> Target:
    """A new tenant on the server."""
    return make_target(tenant, web.address)


def reached(target: Target, port: int | None = None) -> list[str]:
    """Return the arguments that name the tenant's host, and make the command connect to the address of the server."""
    return [f"http://{target.host}", "--connect-to", f"127.0.0.1:{port or target.address[1]}"]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "manage.py", "events", *arguments]


def environment(**variables: str) -> Mapping[str, str]:
    """Return the environment of an operator's command: that of the test run, without `EVENTS_*` and `NO_COLOR`, and with `variables`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTS_") and name != "NO_COLOR"}
    return {**kept, "DJANGO_SETTINGS_MODULE": "config.settings.test", **variables}


def run(*arguments: str, within: float = 90.0, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=ROOT, env=environment(**variables), capture_output=True, text=True, timeout=within, check=False
    )


def start(*arguments: str, **variables: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(*arguments), cwd=ROOT, env=environment(**variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
