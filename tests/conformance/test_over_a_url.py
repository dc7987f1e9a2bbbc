"""Runs the conformance suite in a subprocess against a URL. A conforming service passes, and a non-conforming service fails."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from identity.models import Tenant
from tests.conformance.remote import is_remote
from tests.conformance.web_process import ROOT, web_process
from tests.factories.authapi import global_client

pytestmark = pytest.mark.skipif(is_remote(), reason="this run is the subprocess that a test of this module started")


def _judged(url: str, client_id: str, secret: str) -> subprocess.CompletedProcess[str]:
    credentials = {"CONFORMANCE_URL": url, "CONFORMANCE_CLIENT_ID": client_id, "CONFORMANCE_CLIENT_SECRET": secret}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=--import-mode=importlib"]
    command += ["tests/conformance/test_opening.py", "tests/conformance/test_refusing.py", "tests/conformance/test_filtering.py"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(command, cwd=ROOT, env=kept | credentials, capture_output=True, text=True, timeout=100, check=False)


def test_the_suite_needs_only_the_url_and_credentials_of_a_service(tenant: Tenant) -> None:
    client = global_client(tenant)
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web:
        done = _judged(f"http://127.0.0.1:{web.address[1]}/api/v2", client.client_id, client.secret)
    assert done.returncode == 0, done.stdout[-3000:]
    summary = done.stdout.strip().splitlines()[-1]
    assert "passed" in summary
    assert "skipped" in summary


class _Impostor(http.server.BaseHTTPRequestHandler):
    """Answers every request with an empty stream."""

    def do_GET(self) -> None:
        self._answer(b":connected\n\n", "text/event-stream")

    def do_POST(self) -> None:
        self._answer(json.dumps({"access_token": "any"}).encode(), "application/json")

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no log."""


@pytest.fixture
def impostor() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Impostor)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/api/v2"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_suite_fails_for_a_service_that_does_not_conform(impostor: str) -> None:
    done = _judged(impostor, "somebody", "something")
    assert done.returncode == 1, done.stdout[-3000:]
    assert " passed" not in done.stdout.strip().splitlines()[-1]
