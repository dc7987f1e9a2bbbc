"""The stream, read by an unmodified client library: comments between the messages disturb nobody, canaries are events."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from config.launcher.peers import PLACE
from events.models import Event
from events.numbering import number_tenant
from identity.models import Connection, Tenant
from identity.services.users import create_user
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.authapi import access_token, global_client

pytestmark = pytest.mark.peer

DRIVER = Path(__file__).parent / "drivers" / "stream.py"
PYTHON = PLACE / "python" / "bin" / "python"


def _canary(web: WebProcess, token: str) -> str:
    connection = http.client.HTTPConnection(*web.address, timeout=10)
    headers = {"Host": f"127.0.0.1:{web.address[1]}", "Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", "/api/v2/events/canary", body="{}", headers=headers)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return str(answer["id"])


def _until(lines: Iterator[str], event_id: str) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    for line in lines:
        seen.append(json.loads(line))
        if seen[-1]["id"] == event_id:
            return seen
    raise AssertionError(f"{event_id} never came: {seen}")


def test_the_python_client_reads_events_heartbeats_and_canaries(
    tenant: Tenant, database_connection: Connection, settings: Settings
) -> None:
    if not PYTHON.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    # The client knows the fields of the envelope by the names of its own service.
    settings.EVENT_ATTRIBUTE_PREFIX = "a0"
    with web_process("granian", LOCALHOST_TENANT=tenant.pk, EVENT_ATTRIBUTE_PREFIX="a0", EVENTS_HEARTBEAT_SECONDS="0.3") as web:
        token = access_token(tenant, global_client(tenant))
        arguments = [str(PYTHON), str(DRIVER), f"http://127.0.0.1:{web.address[1]}/api/v2", token]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None
            try:
                opening = json.loads(client.stdout.readline())
                assert "OffsetOnly" in opening["kind"]
                # Only now does the client surely listen: a heartbeat with its comments has come in between.
                beat = json.loads(client.stdout.readline())
                assert (beat["kind"], beat["offset"]) == (opening["kind"], opening["offset"])
                canary = _until(client.stdout, _canary(web, token))[-1]
                assert canary["purpose"] == "test"
                assert canary["offset"] == opening["offset"], "a canary moves no cursor"
                create_user(tenant_id=tenant.pk, connection=database_connection, email="ada@example.test")
                number_tenant(tenant.pk)
                recorded = Event.objects.get(tenant_id=tenant.pk, type="user.created")
                event = _until(client.stdout, recorded.event_id)[-1]
                assert "UserCreated" in event["kind"]
                assert event["offset"] != opening["offset"]
            finally:
                client.terminate()
