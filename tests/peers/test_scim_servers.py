"""The processes of third-party SCIM servers, which a test run starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
import requests

from config.launcher.options import ROOT
from tests.deadlines import eventually

pytestmark = pytest.mark.peer

PROGRAM = """
import json, time
from tests.peers.scim_servers import running
with running("scim2-server") as server:
    print(json.dumps(server.base_url), flush=True)
    time.sleep(600)
"""


def test_a_server_ends_with_its_test_run_even_if_the_run_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=ROOT, stdout=subprocess.PIPE, env=dict(os.environ)) as run:
        assert run.stdout is not None
        base_url = json.loads(run.stdout.readline())
        assert requests.get(f"{base_url}/Users", timeout=10).status_code == 401
        run.send_signal(signal.SIGKILL)

    def is_gone() -> bool:
        try:
            requests.get(f"{base_url}/Users", timeout=10)
        except requests.ConnectionError:
            return True
        return False

    eventually(is_gone)
