"""Unmodified clients authenticate with certificates of a private authority and get certificate-bound tokens (RFC 8705)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from authapi.models import ClientCredential
from authapi.services.client_credentials import NewCredential, create_client_with_credentials
from authapi.services.client_grants import create_client_grant
from config.launcher.peers import PLACE
from identity.models import Connection, Tenant
from identity.services.connections import update_connection
from tests.authapi.assertions import private_key
from tests.authapi.certificates import certificate
from tests.factories.identity import make_user
from tests.factories.models.authapi import ApiResourceFactory
from tests.peers.edge import edge
from tests.peers.sign_in_world import AUDIENCE, CALLBACK, EMAIL, PASSWORD, drive
from tests.peers.test_deployment import NGINX, pem_of

DRIVERS = Path(__file__).parent / "drivers"
pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed: make test-peers"),
]


@pytest.fixture
def given(tenant: Tenant, database_connection: Connection, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Return the values that a driver needs for a service whose API requires certificate-bound tokens."""
    make_user(connection=database_connection, email=EMAIL, password=PASSWORD, email_verified=True)
    things = ApiResourceFactory.create(
        tenant_id=tenant.pk,
        identifier=AUDIENCE,
        scopes=[{"value": "read:things"}],
        settings={"allow_offline_access": True, "proof_of_possession": {"mechanism": "mtls", "required": True}},
    )
    with edge(tenant, tmp_path) as front:
        # A certificate that the authority has signed, and a self-signed certificate.
        shown = {"tls_client_auth": front.authority.issue("client"), "self_signed_tls_client_auth": self_signed(tmp_path)}
        own = shown["self_signed_tls_client_auth"][0].read_text()
        credentials = {
            "tls_client_auth": NewCredential(type=ClientCredential.Type.CERT_SUBJECT_DN, subject_dn="CN=client"),
            "self_signed_tls_client_auth": NewCredential(type=ClientCredential.Type.X509_CERT, pem=own),
        }
        clients = {}
        for method, credential in credentials.items():
            client = create_client_with_credentials(
                tenant_id=tenant.pk,
                name=method,
                methods={method: [credential]},
                grant_types=["authorization_code", "refresh_token", "client_credentials"],
                redirect_uris=CALLBACK,
                settings={"require_proof_of_possession": True},
            )
            create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=things, scopes=["read:things"])
            clients[method] = {"id": client.client_id, "certificate": str(shown[method][0]), "key": str(shown[method][1])}
        changes = {"enabled_clients": [known["id"] for known in clients.values()]}
        update_connection(tenant_id=tenant.pk, connection_id=database_connection.pk, changes=changes)
        yield {
            "issuer": front.issuer,
            "callback": CALLBACK,
            "audience": AUDIENCE,
            "user": {"email": EMAIL, "password": PASSWORD},
            "authority": str(front.authority.file),
            "clients": clients,
        }


def self_signed(directory: Path) -> tuple[Path, Path]:
    files = directory / "self-signed.pem", directory / "self-signed.key"
    for file, content in zip(files, (certificate("first"), pem_of(private_key("first"))), strict=True):
        file.write_text(content)
    return files


def test_openid_client_binds_its_tokens_to_its_certificate(given: dict[str, Any], tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (PLACE / "node_modules" / "openid-client").exists():
        pytest.skip("openid-client is not installed: make test-peers")
    driver = [shutil.copy(DRIVERS / name, PLACE) for name in ("browser.mjs", "openid_client_mtls.mjs")][-1]
    seen = drive([node, str(driver)], given, tmp_path, dict(os.environ))
    for kind in ("tls_client_auth", "self_signed_tls_client_auth"):
        assert seen[kind] == {
            "endpoints": True,
            "type": "bearer",
            "bound by": ["x5t#S256"],
            "profile": EMAIL,
            "refreshed": True,
            "profile without the certificate": 401,
            "refresh without the certificate": 401,
            "client_credentials": True,
        }


def test_authlib_binds_its_tokens_to_its_certificate(given: dict[str, Any], tmp_path: Path) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python clients are not installed: make test-peers")
    command = [str(python), str(DRIVERS / "authlib_mtls.py")]
    seen = drive(command, given, tmp_path, os.environ | {"REQUESTS_CA_BUNDLE": given["authority"]})
    for kind in ("tls_client_auth", "self_signed_tls_client_auth"):
        expected = {"bound by": ["x5t#S256"], "profile": EMAIL, "profile without the certificate": 401, "refreshed": True}
        assert seen[kind] == expected
