"""Second factors of a tenant and of a user, managed by the unmodified Python client over real HTTP."""

from __future__ import annotations

import json
import subprocess

import pytest

from config.launcher.peers import PLACE
from identity.models import Tenant
from tests.conformance.web_process import web_process
from tests.factories.authapi import access_token, global_client
from tests.factories.models.identity import UserFactory
from tests.peers.test_management_sdk import DRIVERS

pytestmark = pytest.mark.peer

SEEN = {
    "no factor yet": [400, "invalid_body"],
    "on": True,
    "other vendor": [400, "operation_not_supported"],
    "factors": ["otp"],
    "policies": ["all-applications"],
    "read": ["all-applications"],
    "made": ["totp", 32, "+491712345678"],
    "listed": ["phone", "totp"],
    "one": ["XXXXXXXXX5678", "App"],
    "renamed": "Other",
    "enrollments": ["authenticator", "sms"],
    "enrollment": ["confirmed", "XXXXXXXXX5678"],
    "recovery": True,
    "set": [True],
    "provider": [],
    "gone": [404, "inexistent_authentication_method"],
    "ticket": [True, False, True],
    "no such user": [404, "inexistent_user"],
    "factor that is off": [409, None],
    "left": [],
}


def test_the_python_client_manages_second_factors(tenant: Tenant) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    user = UserFactory.create(tenant_id=tenant.pk).user_id
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web:
        base = f"http://127.0.0.1:{web.address[1]}/api/v2"
        command = [str(python), str(DRIVERS / "second_factors.py"), base, access_token(tenant, global_client(tenant)), user]
        done = subprocess.run(command, cwd=PLACE, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == SEEN
