"""The lines of `GET /logs`, read by the unmodified Python client over real HTTP."""

from __future__ import annotations

import pytest

from config.launcher.peers import PLACE
from identity.models import Tenant
from tests.peers.test_management_sdk import DRIVERS, drive

pytestmark = pytest.mark.peer


def test_the_python_client_reads_its_own_requests_in_the_log(tenant: Tenant) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    assert drive(tenant, [str(python), str(DRIVERS / "logs.py")]) == {
        "refused": 400,
        "types": ["fapi", "sapi", "sapi", "sapi"],
        "descriptions": ["Update a user", "Create a user", "Create a connection"],
        "user": [True, True],
        "password": "(hidden)",
        "status": 201,
        "found": [True],
        "one": "sapi",
        "of the user": ["Update a user", "Create a user"],
    }
