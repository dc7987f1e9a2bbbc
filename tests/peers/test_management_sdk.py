"""The management interface, called by unmodified clients for Python and Node over real HTTP."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from config.launcher.peers import PLACE
from identity.models import Tenant
from tests.conformance.web_process import web_process
from tests.factories.actions import make_deployed_action
from tests.factories.authapi import access_token, global_client

pytestmark = pytest.mark.peer

DRIVERS = Path(__file__).parent / "drivers"
SEEN = {
    "connection": {"a": "b"},
    "connections": ["people", "mail"],
    "duplicate connection": 409,
    "unknown connection": 404,
    "user ids": ["auth0", "auth0", "auth0"],
    "users": ["ada@example.test", "bob@example.test", "eve@example.test"],
    "user": ["Ada", {"plan": "full"}, "people"],
    "by email": [True],
    "duplicate user": 409,
    "weak password": 400,
    "linked": [["email", "a/b"]],
    "linked user": 404,
    "unlinked": 1,
    "restored": "ada@mail.example.test",
    "stream": ["enabled", True],
    "disabled": "disabled",
    "streams": ["renamed"],
    "unknown stream": 404,
    "left": ["ada@mail.example.test"],
}


def drive(tenant: Tenant, command: list[str]) -> Any:
    """Run a driver against a real server that serves `tenant`, and return its results."""
    token = access_token(tenant, global_client(tenant))
    action = make_deployed_action(tenant)
    # The client libraries expect "auth0" as the strategy of database connections.
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk, DATABASE_STRATEGY="auth0") as web:
        arguments = [f"http://127.0.0.1:{web.address[1]}/api/v2", token, str(action.pk)]
        driven = subprocess.run([*command, *arguments], cwd=PLACE, capture_output=True, text=True, timeout=90, check=False)
    assert driven.returncode == 0, driven.stderr
    return json.loads(driven.stdout)


def test_the_python_client_manages_users_connections_and_event_streams(tenant: Tenant) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    assert drive(tenant, [str(python), str(DRIVERS / "management.py")]) == SEEN


def test_the_node_client_manages_users_connections_and_event_streams(tenant: Tenant) -> None:
    node = shutil.which("node")
    if node is None or not (PLACE / "node_modules" / "auth0").exists():
        pytest.skip("the Node client is not installed: make test-peers")
    # Copy the driver beside the packages: Node searches for packages in the directory of the program.
    driver = shutil.copy(DRIVERS / "management.js", PLACE)
    assert drive(tenant, [node, str(driver)]) == SEEN
