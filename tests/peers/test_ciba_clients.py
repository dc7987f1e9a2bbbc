"""Unmodified clients request an approval elsewhere (CIBA), over TLS with a private authority. A user opens the mailed link."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from authapi.grants.ciba import GRANT
from authapi.services.clients import create_client
from config.launcher.peers import PLACE
from config.launcher.tls import ServerCertificate
from identity.models import Connection, Tenant
from identity.services.connections import update_connection
from tests.deadlines import eventually
from tests.factories.identity import make_user
from tests.peers.outbox import Outbox
from tests.peers.sign_in_world import EMAIL, PASSWORD, drive, serving

pytestmark = pytest.mark.peer
DRIVERS = Path(__file__).parent / "drivers"
_LINK = re.compile(r"https://\S+/approve\?ticket=[\w-]+")
World = tuple[dict[str, Any], ServerCertificate, Outbox]


@pytest.fixture
def world(tenant: Tenant, database_connection: Connection, tmp_path: Path, settings: Any) -> Iterator[World]:
    """Create a tenant with an application that requests approvals. Return the values that a driver needs."""
    user = make_user(connection=database_connection, email=EMAIL, password=PASSWORD, email_verified=True)
    columns: dict[str, Any] = {"grant_types": (GRANT,), "token_endpoint_auth_method": "client_secret_post"}
    client, secret = create_client(tenant_id=tenant.pk, name="Call center", **columns)
    changes = {"enabled_clients": [client.client_id]}
    update_connection(tenant_id=tenant.pk, connection_id=database_connection.pk, changes=changes)
    outbox = Outbox(tmp_path / "mails", settings, tenant_id=tenant.pk)
    with serving(tenant, tmp_path, **outbox.urls) as (process, certificate):
        issuer = f"https://localhost:{process.address[1]}/"
        given = {
            "issuer": issuer,
            "client": {"id": client.client_id, "secret": secret},
            "user": {"email": EMAIL, "password": PASSWORD},
            "sub": user.user_id,
            "link": str(tmp_path / "link"),
            "approved": f"{issuer}approve/done",
        }
        yield given, certificate, outbox


def test_openid_client_requests_an_approval_and_polls_until_the_user_answers(world: World, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (PLACE / "node_modules" / "openid-client").exists():
        pytest.skip("openid-client is not installed: make test-peers")
    given, certificate, outbox = world
    driver = [shutil.copy(DRIVERS / name, PLACE) for name in ("browser.mjs", "openid_client_ciba.mjs")][-1]
    environment = os.environ | {"NODE_EXTRA_CA_CERTS": str(certificate.authority)}
    with ThreadPoolExecutor(1) as pool:
        driven = pool.submit(drive, [node, str(driver)], given, tmp_path, environment)
        eventually(lambda: driven.done() or _mailed(outbox), seconds=60.0)
        # Write the file under another name and rename it when it is complete, so that the driver never reads an incomplete file.
        ready = tmp_path / "ready"
        ready.write_text(_mailed(outbox))
        ready.rename(given["link"])
        seen = driven.result()
    assert seen == {
        "started": ["string", 300, 5],
        "tokens": [EMAIL, True, "bearer"],
        "unknown": [400, "unknown_user_id", "User ID is malformed or unknown"],
    }


def test_auth0_python_requests_an_approval_and_gets_authorization_pending(world: World, tmp_path: Path) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python clients are not installed: make test-peers")
    given, certificate, _ = world
    command = [str(python), str(DRIVERS / "ciba.py")]
    seen = drive(command, given, tmp_path, os.environ | {"REQUESTS_CA_BUNDLE": str(certificate.authority)})
    assert seen == {
        "begun": [["auth_req_id", "expires_in", "interval"], 200],
        "waits": [
            [400, "authorization_pending", "The end-user authorization is pending"],
            [400, "slow_down", "You are polling faster than allowed. Try again in 10 seconds."],
        ],
        "unknown": [400, "unknown_user_id", "User ID is malformed or unknown"],
    }


def _mailed(outbox: Outbox) -> str:
    """Send waiting messages. Return the link in the newest mail, or an empty text if no mail with a link exists yet."""
    outbox.deliver()
    found = [_LINK.search(str(mail.get_body(("plain",)))) for mail in outbox.mails()]
    return next((match[0] for match in reversed(found) if match), "")
