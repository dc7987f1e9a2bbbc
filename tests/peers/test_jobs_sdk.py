"""Imports, exports and verification mails, requested by the unmodified Python client over real HTTP."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connections

from config.launcher.peers import PLACE
from identity.models import Connection, Job, Tenant
from identity.services.jobs import run_job
from tests.conformance.web_process import web_process
from tests.factories.authapi import access_token, global_client

pytestmark = pytest.mark.peer

DRIVER = Path(__file__).parent / "drivers" / "jobs.py"
SEEN = {
    "started": ["users_import", "pending", True, "mine"],
    "summary": [3, 2, 0, 1, 100],
    "updated": 1,
    "errors": [[{"email": 5}, ["INVALID_TYPE"]]],
    "no errors": None,
    "table": ["email,provider", "a@example.test,people", "b@example.test,people"],
    "again": True,
    "mail": ["verification_email", "completed"],
}


@contextmanager
def jobs_worked_off(tenant: Tenant) -> Iterator[None]:
    """Run the jobs of the tenant in a thread, as a worker does, while the block runs."""
    stopping = threading.Event()

    def work() -> None:
        while not stopping.wait(0.05):
            for job in Job.objects.of(tenant.pk).filter(finished_at=None).values_list("pk", flat=True):
                run_job(job)
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def test_the_python_client_imports_exports_and_requests_mails(tenant: Tenant, database_connection: Connection) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    token = access_token(tenant, global_client(tenant))
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web, jobs_worked_off(tenant):
        arguments = [f"http://127.0.0.1:{web.address[1]}/api/v2", token]
        driven = subprocess.run([str(python), str(DRIVER), *arguments], cwd=PLACE, capture_output=True, text=True, timeout=120, check=False)
    assert driven.returncode == 0, driven.stderr
    assert json.loads(driven.stdout) == SEEN
