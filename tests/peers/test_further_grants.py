"""Unmodified clients use device logins, token exchange, introspection and client registration. They use TLS with a private
certificate authority."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from authapi.models import ClientCredential
from authapi.services.client_credentials import NewCredential, create_credential
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client, update_client
from authapi.services.tenant_settings import update_tenant_settings
from config.launcher.peers import PLACE
from config.launcher.tls import ServerCertificate
from identity.models import Connection, Tenant
from identity.services.connections import update_connection
from tests.factories.identity import make_user
from tests.factories.models.authapi import ApiResourceFactory
from tests.peers.sign_in_world import AUDIENCE, CALLBACK, EMAIL, PASSWORD, drive, serving

pytestmark = pytest.mark.peer

DRIVERS = Path(__file__).parent / "drivers"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
NEXT = "https://next.example.test/"
SETTINGS: dict[str, Any] = {
    "token_introspection_supported": True,
    "flags": {"enable_dynamic_client_registration": True},
    "require_initial_access_token": False,
}
World = tuple[dict[str, Any], ServerCertificate]


@pytest.fixture
def world(tenant: Tenant, database_connection: Connection, tmp_path: Path) -> Iterator[World]:
    """Create a tenant with an application, a device, and an API that calls another API. Return the values that a driver needs."""
    update_tenant_settings(tenant_id=tenant.pk, changes=SETTINGS)
    make_user(connection=database_connection, email=EMAIL, password=PASSWORD, email_verified=True)
    ApiResourceFactory.create(tenant_id=tenant.pk, identifier=AUDIENCE, scopes=[{"value": "read:things"}])
    following = ApiResourceFactory.create(tenant_id=tenant.pk, identifier=NEXT, scopes=[{"value": "read:things"}])
    web, web_secret = create_client(tenant_id=tenant.pk, name="Web", grant_types=("authorization_code",), redirect_uris=CALLBACK)
    device, _ = create_client(tenant_id=tenant.pk, name="Television", grant_types=(DEVICE,), token_endpoint_auth_method="none")
    linked = {"resource_server_identifier": AUDIENCE, "token_exchange": {"allow_any_profile_of_type": ["on_behalf_of_token_exchange"]}}
    columns: dict[str, Any] = {"name": "API", "app_type": "resource_server", "grant_types": (EXCHANGE,), "settings": linked}
    api, api_secret = create_client(tenant_id=tenant.pk, **columns)
    named: dict[str, Any] = {"tenant_id": tenant.pk, "client_id": api.client_id, "api_resource": following}
    create_client_grant(**named, scopes=["read:things"], subject_type="user")
    changes = {"enabled_clients": [web.client_id, device.client_id]}
    update_connection(tenant_id=tenant.pk, connection_id=database_connection.pk, changes=changes)
    clients = {
        "web": {"id": web.client_id, "secret": web_secret, "requestKey": request_key(tenant, web.client_id)},
        "api": {"id": api.client_id, "secret": api_secret},
        "device": device.client_id,
    }
    with serving(tenant, tmp_path) as (process, certificate):
        issuer = f"https://localhost:{process.address[1]}/"
        yield (
            {
                "issuer": issuer,
                "callback": CALLBACK,
                "activated": f"{issuer}activate/",
                "audience": AUDIENCE,
                "next": NEXT,
                "user": {"email": EMAIL, "password": PASSWORD},
                "clients": clients,
            },
            certificate,
        )


def request_key(tenant: Tenant, client_id: str) -> str:
    """Register a key with which the client signs authorization requests. Return the private key in PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
    new = NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public, algorithm="PS256")
    credential = create_credential(tenant_id=tenant.pk, client_id=client_id, new=new)
    settings = {"signed_request_object": {"required": False, "credentials": [{"id": credential.pk}]}}
    update_client(tenant_id=tenant.pk, client_id=client_id, changes={"settings": settings})
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()


def test_openid_client_can_use_the_device_flow_and_token_exchange_and_introspection_and_registration(world: World, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (PLACE / "node_modules" / "openid-client").exists():
        pytest.skip("openid-client is not installed: make test-peers")
    given, certificate = world
    driver = [shutil.copy(DRIVERS / name, PLACE) for name in ("browser.mjs", "openid_client_further.mjs")][-1]
    seen = drive([node, str(driver)], given, tmp_path, os.environ | {"NODE_EXTRA_CA_CERTS": str(certificate.authority)})
    assert seen == {
        "device": [EMAIL, "bearer"],
        "device with a key": [EMAIL, "dpop"],
        "exchange": [NEXT, True, "string", True],
        "exchange of nonsense": "invalid_request",
        "introspection": [True, True],
        "introspection of nonsense": False,
        "registered": ["string", "string", "string"],
    }


def test_authlib_can_use_pushed_requests_and_the_device_flow_and_token_exchange_and_registration(world: World, tmp_path: Path) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python clients are not installed: make test-peers")
    given, certificate = world
    command = [str(python), str(DRIVERS / "authlib_further.py")]
    seen = drive(command, given, tmp_path, os.environ | {"REQUESTS_CA_BUNDLE": str(certificate.authority)})
    assert seen == {
        "pushed": [EMAIL, "invalid_grant"],
        "signed and pushed": [EMAIL, "invalid_grant"],
        "device before the answer": "authorization_pending",
        "device": True,
        "exchange": True,
        "introspection": [True, True],
        "registered": [True, 204],
    }
