"""Unmodified client libraries read the event stream. They ignore comments between the messages, and read canaries as events."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from authapi.accounts.event_context import context_of
from config.launcher.peers import PLACE
from events.log.numbering import number_tenant
from events.models import Event
from events.record.catalogue import EVENT_TYPES
from foundation.change_context import ChangeContext, change_context
from identity.models import Connection, Tenant
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.authapi import access_token, global_client, host_of
from tests.factories.event_story import tell_every_type
from tests.factories.models.identity import UserFactory

pytestmark = pytest.mark.peer

DRIVERS = Path(__file__).parent / "drivers"
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


def _kind(message: dict[str, Any]) -> str:
    """Return the type of a message. One client prints the type as on the wire, and the other client prints the name of a class."""
    return re.sub(r"[^a-z]", "", message["kind"].lower())


@pytest.fixture(params=["python", "node"])
def client(request: pytest.FixtureRequest) -> list[str]:
    """Return the command of a client that subscribes and prints the messages."""
    if request.param == "python":
        if not PYTHON.exists():
            pytest.skip("the Python client is not installed: make test-peers")
        return [str(PYTHON), str(DRIVERS / "stream.py")]
    node = shutil.which("node")
    if node is None or not (PLACE / "node_modules" / "auth0").exists():
        pytest.skip("the Node client is not installed: make test-peers")
    # Copy the driver beside the packages: Node searches for packages in the directory of the program.
    return [node, str(shutil.copy(DRIVERS / "stream.js", PLACE / "stream.js"))]


def test_a_client_reads_events_heartbeats_and_canaries(
    client: list[str], tenant: Tenant, database_connection: Connection, settings: Settings
) -> None:
    # The clients expect the prefix of their own vendor in the field names of the envelope.
    settings.EVENT_ATTRIBUTE_PREFIX = "a0"
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk, EVENT_ATTRIBUTE_PREFIX="a0", EVENTS_HEARTBEAT_SECONDS="0.3") as web:
        token = access_token(tenant, global_client(tenant))
        arguments = [*client, f"http://127.0.0.1:{web.address[1]}/api/v2", token]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            try:
                opening = json.loads(running.stdout.readline())
                assert "offsetonly" in _kind(opening)
                # The client has received a heartbeat. So it is connected now, and it has ignored the comments of the heartbeat.
                beat = json.loads(running.stdout.readline())
                assert (beat["kind"], beat["offset"]) == (opening["kind"], opening["offset"])
                canary = _until(running.stdout, _canary(web, token))[-1]
                assert canary["purpose"] == "test"
                assert canary["offset"] == opening["offset"], "a canary moves no cursor"
                UserFactory.create(tenant_id=tenant.pk, connection=database_connection, email="ada@example.test")
                number_tenant(tenant.pk)
                recorded = Event.objects.get(tenant_id=tenant.pk, type="user.created")
                event = _until(running.stdout, recorded.event_id)[-1]
                assert "usercreated" in _kind(event)
                assert event["offset"] != opening["offset"]
            finally:
                running.terminate()


def _causes(tenant: Tenant) -> dict[str, ChangeContext]:
    registered = global_client(tenant, metadata={"tier": "gold"})
    page: dict[str, Any] = {"ip": "192.0.2.1", "user_agent": "probe/1"}
    return {
        "staff": context_of(host_of(tenant), None, **page),
        "client": context_of(host_of(tenant), registered.client, **page),
        "command": ChangeContext(),
    }


@pytest.mark.parametrize("cause", ["staff", "client", "command"])
def test_the_models_of_the_python_client_accept_every_event_type(tenant: Tenant, settings: Settings, cause: str) -> None:
    if not PYTHON.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    settings.EVENT_ATTRIBUTE_PREFIX = "a0"
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with change_context(_causes(tenant)[cause]):
        tell_every_type(tenant)
    number_tenant(tenant.pk)
    # If the models of the client refuse a message, the client drops the message and only logs a warning.
    recorded = list(Event.objects.filter(tenant_id=tenant.pk).order_by("pk").values_list("event_id", flat=True))
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk, EVENT_ATTRIBUTE_PREFIX="a0", EVENTS_HEARTBEAT_SECONDS="0.3") as web:
        arguments = [str(PYTHON), str(DRIVERS / "stream.py"), f"http://127.0.0.1:{web.address[1]}/api/v2"]
        with subprocess.Popen(
            [*arguments, access_token(tenant, global_client(tenant)), since], stdout=subprocess.PIPE, text=True
        ) as running:
            assert running.stdout is not None
            try:
                read = _until(running.stdout, recorded[-1])
            finally:
                running.terminate()
    events = [message for message in read if message["id"]]
    assert [message["id"] for message in events] == recorded
    assert len({_kind(message) for message in events}) == len(EVENT_TYPES)
