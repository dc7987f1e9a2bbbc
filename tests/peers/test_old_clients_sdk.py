"""Unmodified auth0-python at the endpoints of old clients."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from authapi.protocols.legacy.opting_in import LEGACY_GRANTS
from authapi.services.clients import create_client
from config.launcher.peers import PLACE
from identity.models import Connection, Tenant
from identity.services.connections import update_connection
from tests.factories.identity import make_user
from tests.peers.sign_in_world import EMAIL, PASSWORD, REALM_GRANT, drive, serving

pytestmark = pytest.mark.peer
DRIVER = Path(__file__).parent / "drivers" / "old_clients.py"


def test_auth0_python_delegates_a_token_and_parses_refusals(tenant: Tenant, database_connection: Connection, tmp_path: Path) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python clients are not installed: make test-peers")
    grants = [*LEGACY_GRANTS, REALM_GRANT]
    client, _ = create_client(tenant_id=tenant.pk, name="Old", token_endpoint_auth_method="none", grant_types=grants)
    target, _ = create_client(tenant_id=tenant.pk, name="Target", settings={"allowed_clients": [client.client_id]})
    enabled = [client.client_id, target.client_id]
    update_connection(tenant_id=tenant.pk, connection_id=database_connection.pk, changes={"enabled_clients": enabled})
    make_user(connection=database_connection, email=EMAIL, password=PASSWORD)
    with serving(tenant, tmp_path) as (web, certificate):
        given = {
            "domain": f"localhost:{web.address[1]}",
            "client": client.client_id,
            "target": target.client_id,
            "user": {"email": EMAIL, "password": PASSWORD, "connection": database_connection.name},
        }
        seen = drive([str(python), str(DRIVER)], given, tmp_path, os.environ | {"REQUESTS_CA_BUNDLE": str(certificate.authority)})
    assert seen["delegated"] == ["expires_in", "id_token", "token_type"]
    words = "The target is unknown or does not allow delegation by this client."
    assert seen["delegated elsewhere"] == [400, "invalid_request", words]
    assert seen["social"] == [400, "invalid_request", "the connection was not found"]
    assert seen["signed up"] == ["_id", "email", "email_verified"]
