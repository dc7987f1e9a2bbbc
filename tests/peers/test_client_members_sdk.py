"""The unmodified Python client manages clients, their credentials, and connections with discovered endpoints.

It also selects fields of lists.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from config.launcher.peers import PLACE
from identity.models import Tenant
from tests.authapi.assertions import public_pem
from tests.conformance.web_process import web_process
from tests.factories.authapi import access_token, global_client
from tests.factories.provider import provider
from tests.peers.test_management_sdk import DRIVERS

pytestmark = pytest.mark.peer

SEEN = {
    "members": ["9JA89QQLNQ", False, False, 5],
    "defaults": [False, True, "non-rotating", 2_592_000],
    "addon": "operation_not_supported",
    "default organization": ["client_credentials"],
    "unknown organization": "invalid_body",
    "fields": [["Shop", None]],
    "unknown field": "invalid_query_string",
    "used credential": "operation_not_supported",
    "credentials": 0,
    "enabled clients": [],
    "discovered": "/token",
    "google": "google-apps",
    "attributes": "invalid_body",
}


def test_the_python_client_writes_members_of_clients_and_reads_discovered_endpoints(tenant: Tenant) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    token = access_token(tenant, global_client(tenant))
    # The client library expects "auth0" as the strategy of database connections.
    with provider() as upstream, web_process("uvicorn", LOCALHOST_TENANT=tenant.pk, DATABASE_STRATEGY="auth0") as web:
        arguments = [f"http://127.0.0.1:{web.address[1]}/api/v2", token, upstream.issuer, public_pem()]
        command = [str(python), str(DRIVERS / "client_members.py"), *arguments]
        driven = subprocess.run(command, cwd=PLACE, capture_output=True, text=True, timeout=90, check=False)
    assert driven.returncode == 0, driven.stderr
    assert json.loads(driven.stdout) == SEEN
