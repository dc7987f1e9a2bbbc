"""The attack protection of a tenant, configured by the unmodified Python client over real HTTP."""

from __future__ import annotations

import json
import subprocess

import pytest

from authapi.accounts.suspicion import DEFAULTS, count_attempt, remembered_suspicion
from config.launcher.peers import PLACE
from identity.models import Tenant
from tests.conformance.web_process import web_process
from tests.factories.authapi import access_token, global_client
from tests.peers.test_management_sdk import DRIVERS

pytestmark = pytest.mark.peer

ADDRESS = "203.0.113.9"
SEEN = {
    "detection": False,
    "detected": [["block", "user_notification"], ["block"], ["admin_notification"], True],
    "enhanced": [400, "operation_not_supported"],
    "throttling": [True, 100, 600_000],
    "throttled": [["192.0.2.0/24"], 7, 50],
    "odd": [400, "invalid_body"],
    "not blocked": [404, None],
    "lifted": None,
    "no address": [400, "invalid_uri"],
    "blocked": None,
    "lifted now": [404, None],
}


def test_the_python_client_configures_protections_and_lifts_a_block(tenant: Tenant) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    # These attempts are counted in Redis, which the server also reads.
    stage = DEFAULTS["stage"]["pre-custom-token-exchange"]
    for _ in range(stage["max_attempts"]):
        count_attempt(tenant.pk, ADDRESS, "pre-custom-token-exchange")
    remembered_suspicion.clear()
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web:
        base = f"http://127.0.0.1:{web.address[1]}/api/v2"
        command = [str(python), str(DRIVERS / "attack_protection.py"), base, access_token(tenant, global_client(tenant)), ADDRESS]
        done = subprocess.run(command, cwd=PLACE, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == SEEN
