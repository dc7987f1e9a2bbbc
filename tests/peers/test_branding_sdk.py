"""The branding of a tenant, written and read by the unmodified Python client over real HTTP."""

from __future__ import annotations

import json
import subprocess

import pytest

from authapi.looks.theme import default_theme, with_value
from config.launcher.peers import PLACE
from identity.models import Tenant
from tests.conformance.web_process import web_process
from tests.factories.authapi import access_token, global_client
from tests.peers.test_management_sdk import DRIVERS

pytestmark = pytest.mark.peer

SEEN = {
    "settings": [
        "#0b6e4f",
        "https://cdn.example.com/logo.png",
        "https://cdn.example.com/icon.png",
        "https://cdn.example.com/brand.woff2",
        True,
    ],
    "bad settings": [400, "invalid_body"],
    "none": [404, "inexistent_theme"],
    "made": ["Ours", 48, 150, "dark"],
    "same": True,
    "updated": "left",
    "second": [409, "theme_already_exists"],
    "unreadable": [400, "invalid_body"],
    "gone": [404, "inexistent_theme"],
}


def test_the_python_client_writes_and_reads_the_branding(tenant: Tenant) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    groups = with_value(default_theme(), ("colors", "captcha_widget_theme"), "dark")
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web:
        base = f"http://127.0.0.1:{web.address[1]}/api/v2"
        command = [str(python), str(DRIVERS / "branding.py"), base, access_token(tenant, global_client(tenant)), json.dumps(groups)]
        done = subprocess.run(command, cwd=PLACE, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == SEEN
