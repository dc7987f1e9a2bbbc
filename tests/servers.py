"""A pytest plugin that starts the servers of the suite before Django reads its settings.

pytest-django reads the settings in `pytest_load_initial_conftests`. This plugin (`-p tests.servers`) runs earlier in the same hook.
Under xdist, the controller process starts the servers once. The worker processes get the URLs of the servers through environment
variables, and each worker process has its own database and Redis prefix.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack

import pytest

from config.launcher.servers import VARIABLES, temporary_servers

# If this variable is 1, commits are durable. Fault tests need this, because they kill servers and then read the committed rows.
_DURABLE_VARIABLE = "TEST_SERVERS_DURABLE"
_servers = ExitStack()
_started: list[str] = []


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: Sequence[str]) -> None:
    """Start the servers whose URLs are not in environment variables, and set these variables."""
    if "PYTEST_XDIST_WORKER" in os.environ or {"--collect-only", "--co", "--fixtures", "--markers"} & set(args):
        return
    _started.extend(name for name in VARIABLES if not os.environ.get(name))
    os.environ.update(_servers.enter_context(temporary_servers(durable=os.environ.get(_DURABLE_VARIABLE) == "1")))


def pytest_report_header() -> str:
    """Return a line that names the servers of the run. It does not contain the URLs, which may contain a password."""
    used = [f"{name} {'private' if name in _started else 'outside'}" for name in VARIABLES]
    return f"servers: {', '.join(used)}"


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Stop the started servers after every other plugin has closed its connections."""
    _servers.close()
