"""Makes every test of deliveries begin like a new worker process whose database contains no other enabled streams."""

from __future__ import annotations

import pytest
from django.db import connection

from provisioning.engine import fairness


@pytest.fixture(autouse=True)
def alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the turns of this process, and disable the streams of earlier tests. Otherwise one of them could get the next turn."""
    monkeypatch.setattr(fairness, "_rotas", {})
    if "committed_db" in request.fixturenames:
        request.getfixturevalue("committed_db")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE events_eventstream SET status = 'disabled' WHERE status = 'enabled'")
