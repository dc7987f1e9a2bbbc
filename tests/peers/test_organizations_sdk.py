"""Roles, groups, organizations, clients and client grants, managed by the unmodified Python client over real HTTP."""

from __future__ import annotations

import json
import subprocess

import pytest

from config.launcher.peers import PLACE
from identity.models import Connection, Tenant
from identity.services.groups import add_group_members
from tests.conformance.web_process import web_process
from tests.factories.authapi import access_token, global_client
from tests.factories.identity import make_user
from tests.factories.organizations import make_group
from tests.peers.test_management_sdk import DRIVERS

pytestmark = pytest.mark.peer

SEEN = {
    "resource server": ["Orders", 2],
    "role": ["writer", ["writer"]],
    "permissions": [["read:orders"], ["Read"]],
    "role users": [["ada@example.test"], [True]],
    "effective": [["direct"]],
    "effective permissions": [["direct", "roles"]],
    "group": ["engineers", ["engineers"]],
    "roles of the group": [True],
    "groups of the role": [True],
    "group members": [["user", True]],
    "user groups": ["engineers"],
    "source groups": ["engineers"],
    "connections at creation": ["people"],
    "organization": [True, {"tier": "gold"}],
    "organizations": ["acme"],
    "enabled connections": [True, [True]],
    "connections": [True],
    "members": ["ada@example.test"],
    "member roles": ["writer"],
    "group roles": ["writer"],
    "groups": ["engineers"],
    "sources of a member role": [["direct", "groups"]],
    "member source groups": ["engineers"],
    "role members": [True],
    "user organizations": ["acme"],
    "client": [64, "Store"],
    "rotated": True,
    "clients": ["Store"],
    "enabled clients": [True],
    "client connections": ["people"],
    "grants": [[True, []]],
    "left": [0, 0, 0],
}


def test_the_python_client_manages_roles_and_groups_and_organizations_and_clients_and_grants(
    tenant: Tenant, database_connection: Connection
) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python client is not installed: make test-peers")
    ada = make_user(connection=database_connection, email="ada@example.test")
    group = make_group(tenant, "engineers")
    add_group_members(tenant_id=tenant.pk, group_id=group.pk, user_ids=[ada.user_id])
    token = access_token(tenant, global_client(tenant))
    with web_process("uvicorn", LOCALHOST_TENANT=tenant.pk) as web:
        arguments = [f"http://127.0.0.1:{web.address[1]}/api/v2", token, group.pk]
        command = [str(python), str(DRIVERS / "organizations.py"), *arguments]
        driven = subprocess.run(command, cwd=PLACE, capture_output=True, text=True, timeout=120, check=False)
    assert driven.returncode == 0, driven.stderr
    assert json.loads(driven.stdout) == SEEN
