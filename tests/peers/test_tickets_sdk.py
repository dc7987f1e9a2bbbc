"""Tickets and invitations, created by the unmodified Python client over real HTTP."""

from __future__ import annotations

import json
import subprocess

import pytest

from config.launcher.peers import PLACE
from identity.models import Connection, Tenant
from tests.conformance.web_process import web_process
from tests.factories.authapi import access_token, events_token, global_client
from tests.factories.identity import make_user
from tests.factories.organizations import make_organization
from tests.factories.sign_in import web_client
from tests.peers.test_management_sdk import DRIVERS

pytestmark = pytest.mark.peer

ROUTE = "https://app.example.test/login"
BODY = ["BadRequestError", 400, "invalid_body"]
NO_USER = ["NotFoundError", 404, "inexistent_user"]
INVITATIONS = {
    "made": ["Ada", "grace@example.test", True, {"plan": "gold"}, True],
    "lifetime in seconds": 60,
    "target of the link": ROUTE,
    "read equals created": True,
    "listed": ["bob@example.test", "grace@example.test"],
    "invalid address": BODY,
    "unknown client": ["NotFoundError", 404, "inexistent_client"],
    "left": ["bob@example.test"],
}


def test_the_python_client_creates_tickets_and_invitations(tenant: Tenant, database_connection: Connection) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    ada = make_user(connection=database_connection, email="ada@example.test", email_verified=False)
    organization = make_organization(tenant, "acme")
    client, _ = web_client(tenant, settings={"organization_usage": "allow", "initiate_login_uri": ROUTE})
    tokens = access_token(tenant, global_client(tenant)), events_token(tenant)
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web:
        things = [ada.user_id, database_connection.pk, organization.pk, client.client_id]
        command = [str(python), str(DRIVERS / "tickets.py"), f"http://127.0.0.1:{web.address[1]}/api/v2", *tokens, *things]
        done = subprocess.run(command, cwd=PLACE, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)

    links = [seen["tickets"].pop(name) for name in ("reset by id", "reset by address", "verify")]
    assert len(set(links)) == 3
    assert all("?ticket=" in link for link in links)
    assert seen["tickets"] == {
        "unknown": NO_USER,
        "reset for an unknown user": NO_USER,
        "user id and address together": BODY,
        "invalid address": BODY,
    }
    missing = {seen["invitations"].pop(name)[1] for name in ("unknown", "gone")}
    assert missing == {404}
    assert seen["invitations"] == INVITATIONS
    assert {tuple(told) for told in seen["without the scope"].values()} == {("ForbiddenError", 403, "insufficient_scope")}
