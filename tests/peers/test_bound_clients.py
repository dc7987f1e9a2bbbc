"""An unmodified client pushes and signs authorization requests, and proves that it has the key of its tokens.

The requests use TLS with a private authority (RFC 9126, RFC 9101, RFC 9449).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from authapi.models import ClientCredential
from authapi.services.client_credentials import NewCredential, create_credential
from authapi.services.clients import update_client
from config.launcher.peers import PLACE
from identity.models import Connection, Tenant
from tests.peers.sign_in_world import EMAIL, described, drive, serving

pytestmark = pytest.mark.peer

DRIVERS = Path(__file__).parent / "drivers"


def hardened(tenant: Tenant, given: dict[str, Any]) -> dict[str, str]:
    """Register a client that authenticates with assertions, must push authorization requests, and has a key to sign them."""
    known = given["clients"]["assertion"]
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
    new = NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public, algorithm="PS256")
    credential = create_credential(tenant_id=tenant.pk, client_id=known["id"], new=new)
    settings = {"signed_request_object": {"required": False, "credentials": [{"id": credential.pk}]}}
    update_client(tenant_id=tenant.pk, client_id=known["id"], changes={"settings": settings})
    form = serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
    return {**known, "requestKey": private}


def test_openid_client_pushes_signed_requests_and_proves_that_it_has_its_key(
    tenant: Tenant, database_connection: Connection, tmp_path: Path
) -> None:
    node = shutil.which("node")
    if node is None or not (PLACE / "node_modules" / "openid-client").exists():
        pytest.skip("openid-client is not installed: make test-peers")
    driver = [shutil.copy(DRIVERS / name, PLACE) for name in ("browser.mjs", "openid_client_fapi.mjs")][-1]
    with serving(tenant, tmp_path) as (web, certificate):
        given = described(tenant, database_connection, web)
        given["client"] = hardened(tenant, given)
        seen = drive([node, str(driver)], given, tmp_path, os.environ | {"NODE_EXTRA_CA_CERTS": str(certificate.authority)})

    assert seen["discovery"] == [True, True, True]
    assert seen["address holds"] == ["client_id", "request_uri"]
    assert seen["signed address holds"] == ["client_id", "request"]
    assert seen["pushed"] == seen["signed and pushed"] == [EMAIL, "dpop", "string"]
    assert seen["signed"] == [EMAIL, "bearer", "undefined"]
    assert seen["profile"] == EMAIL
    assert "not refused" not in (seen["profile without the key"], seen["profile with another key"])
    assert seen["refreshed"] == ["dpop", True]
    assert seen["code twice"] == "invalid_grant"
    assert seen["client_credentials"] == ["dpop", "string"]
