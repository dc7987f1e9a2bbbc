"""A pytest plugin that gives the suite its servers before Django reads its settings.

pytest-django reads the settings in `pytest_load_initial_conftests`; this plugin runs first there (`-p tests.servers`).
Under xdist the controller starts the servers once; its workers inherit the addresses through the environment, and
each has a database and a Redis prefix of its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack

import pytest

from config.launcher.servers import VARIABLES, temporary_servers

_servers = ExitStack()
_started: list[str] = []


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: Sequence[str]) -> None:
    """Start the servers that the environment does not name."""
    if "PYTEST_XDIST_WORKER" in os.environ or {"--collect-only", "--co", "--fixtures", "--markers"} & set(args):
        return
    _started.extend(name for name in VARIABLES if not os.environ.get(name))
    os.environ.update(_servers.enter_context(temporary_servers()))


def pytest_report_header() -> str:
    """Say which servers the run uses, without their addresses: an outside one may hold a password."""
    used = [f"{name} {'private' if name in _started else 'outside'}" for name in VARIABLES]
    return f"servers: {', '.join(used)}"


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Stop what was started, after every other plugin has closed its connections."""
    _servers.close()
