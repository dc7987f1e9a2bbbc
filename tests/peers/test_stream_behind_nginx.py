"""`events doctor` with nginx. The doctor reports the fault of a wrong configuration. For a correct configuration, it reports no fault."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from identity.models import Tenant
from tests.conformance.target import make_target
from tests.conformance.web_process import web_process
from tests.events.commands.conftest import reached, run
from tests.peers.nginx import PROGRAM, nginx

pytestmark = [pytest.mark.peer, pytest.mark.skipif(PROGRAM is None, reason="nginx is not installed: make test-peers")]

RIGHT = "proxy_http_version 1.1; proxy_set_header Connection ''; proxy_buffering off; gzip off; proxy_read_timeout 1h;"
# A configuration that compresses responses. It must hide the header Content-Encoding of the service: nginx does not compress a response
# that has this header.
COMPRESSING = (
    "proxy_http_version 1.1; proxy_set_header Connection ''; proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;"
    " proxy_hide_header Content-Encoding; gzip on; gzip_proxied any; gzip_types text/event-stream;"
)
CUTTING = "proxy_http_version 1.1; proxy_set_header Connection ''; proxy_read_timeout 1s;"


def examined(tenant: Tenant, location: str, directory: Path, *options: str, heartbeat_seconds: float = 0.5) -> tuple[int, dict[str, Any]]:
    """Run the doctor against the service behind nginx. Return its exit status, and its findings by name."""
    with web_process("uvicorn", EVENTS_HEARTBEAT_SECONDS=str(heartbeat_seconds)) as web:
        target = make_target(tenant, web.address)
        with nginx(web.address[1], location, directory) as port:
            arguments = [*reached(target, port), "--json", "--watch", "3", "--read-timeout", "3", *options]
            done: subprocess.CompletedProcess[str] = run("doctor", *arguments, EVENTS_TOKEN=target.token())
    document = json.loads(done.stdout)
    return done.returncode, {finding["check"]: finding for finding in document["findings"]}


def test_the_doctor_reports_no_fault_of_a_correct_configuration(tenant: Tenant, tmp_path: Path) -> None:
    status, findings = examined(tenant, RIGHT, tmp_path, "--slots")
    assert (status, {finding["verdict"] for finding in findings.values()}) == (0, {"ok", "skip"}), findings


def test_the_doctor_detects_compression_and_names_the_fix(tenant: Tenant, tmp_path: Path) -> None:
    status, findings = examined(tenant, COMPRESSING, tmp_path)
    assert (status, findings["compression"]["verdict"]) == (2, "FAIL"), findings
    assert findings["compression"]["advice"].startswith("nginx: gzip off;")


def test_the_doctor_detects_the_idle_timeout_of_a_proxy_when_the_stream_ends(tenant: Tenant, tmp_path: Path) -> None:
    status, findings = examined(tenant, CUTTING, tmp_path, heartbeat_seconds=30)
    assert (status, findings["heartbeat"]["verdict"]) == (2, "FAIL"), findings
    assert "without an error message from the service" in findings["heartbeat"]["finding"]
    assert "proxy_read_timeout" in findings["heartbeat"]["advice"]
