"""Custom domains, device credentials, and operations that the service does not have, called by the unmodified Python client over HTTP."""

from __future__ import annotations

import json
import subprocess

import pytest

from authapi.services.clients import create_client
from config.launcher.peers import PLACE
from identity.models import Connection, Tenant
from tests.conformance.web_process import web_process
from tests.factories.authapi import access_token, global_client
from tests.factories.identity import make_user
from tests.factories.sign_ins import make_refresh_token
from tests.name_server import name_server
from tests.peers.test_management_sdk import DRIVERS

pytestmark = pytest.mark.peer

SEEN = {
    "created": ["pending_verification", False, "txt"],
    "unproven": "failed",
    "proven": "ready",
    "read": {"team": "web"},
    "changed": {"owner": "ops"},
    "listed": ["ready"],
    "chosen": True,
    "tested": False,
    "in use": [409, None],
    "unknown": [404, "inexistent_custom_domain"],
    "devices": [["refresh_token", "Phone/1.0", True]],
    "devices left": 0,
    "device key": [400, "invalid_body"],
    "enrollments": [],
    "status": None,
    "search": [404, "operation_not_supported"],
    "agents": [404, "operation_not_supported"],
    "deleted": [404, "inexistent_user"],
}


def test_the_python_client_manages_domains_and_gets_errors_for_missing_operations(tenant: Tenant, database_connection: Connection) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    ada = make_user(connection=database_connection, email="ada@example.test")
    client, _ = create_client(tenant_id=tenant.pk, name="app")
    make_refresh_token(ada, client, is_rotating=False, initial_user_agent="Phone/1.0")
    token, host = access_token(tenant, global_client(tenant)), f"login.{tenant.pk}.example.test"
    with name_server() as server, web_process("uvicorn", LOCALHOST_TENANT=tenant.pk, DNS_SERVERS="{}:{}".format(*server.address)) as web:
        arguments = [f"http://127.0.0.1:{web.address[1]}/api/v2", token, host, database_connection.pk, ada.user_id]
        command = [str(python), str(DRIVERS / "domains.py"), *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, cwd=PLACE, text=True, **pipes) as driver:  # type: ignore[call-overload]  # mypy cannot match a dict of pipes
            shown = driver.stdout.readline()
            if shown:
                name, record = json.loads(shown)
                server.records[name] = [record]
            told, errors = driver.communicate("published\n", timeout=120)
    assert driver.returncode == 0, errors
    assert json.loads(told) == {**SEEN, "default": f"{tenant.pk}.example.test"}
