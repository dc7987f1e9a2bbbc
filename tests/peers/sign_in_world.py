"""A tenant with a user, and with applications for the client libraries of other projects, served over TLS with a certificate of a
private authority.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from authapi.models import ApiResource, ClientCredential
from authapi.services.client_credentials import NewCredential, create_client_with_credentials
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client
from authapi.services.tenant_settings import update_tenant_settings
from config.launcher.tls import ServerCertificate, server_certificate
from identity.models import Connection, Tenant
from identity.services.connections import update_connection
from tests.conformance.web_process import WebProcess, tls_web_process
from tests.factories.identity import make_user
from tests.factories.models.authapi import ApiResourceFactory

CALLBACK = "https://app.example.test/callback"
LOGGED_OUT = "https://app.example.test/bye"
AUDIENCE = "https://things.example.test/"
EMAIL = "ada@example.test"
PASSWORD = "correct horse battery staple 7"
REALM_GRANT = "http://auth0.com/oauth/grant-type/password-realm"
GRANTS = ("authorization_code", "refresh_token", "client_credentials", "password", REALM_GRANT, "implicit")
METHODS = {"public": "none", "post": "client_secret_post", "basic": "client_secret_basic"}


@contextmanager
def serving(tenant: Tenant, directory: Path, **environment: str) -> Iterator[tuple[WebProcess, ServerCertificate]]:
    """Serve `tenant` at https://localhost:<port>/, and yield the web process and its certificate."""
    certificate = server_certificate(directory)
    with tls_web_process(certificate, LOCALHOST_TENANT=tenant.pk, **environment) as web:
        yield web, certificate


def described(tenant: Tenant, connection: Connection, web: WebProcess) -> dict[str, Any]:
    """Create an API, a user, and a client for each authentication method. Return the values that a driver needs."""
    things = ApiResourceFactory.create(
        tenant_id=tenant.pk,
        identifier=AUDIENCE,
        name="Things",
        scopes=[{"value": "read:things", "description": "See your things"}],
        settings={"allow_offline_access": True},
    )
    make_user(connection=connection, email=EMAIL, password=PASSWORD, given_name="Ada", email_verified=True)
    update_tenant_settings(tenant_id=tenant.pk, changes={"default_directory": connection.name})
    clients = {kind: _client(tenant, kind, things) for kind in (*METHODS, "assertion")}
    enabled = [client["id"] for client in clients.values()]
    update_connection(tenant_id=tenant.pk, connection_id=connection.pk, changes={"enabled_clients": enabled})
    return {
        "issuer": f"https://localhost:{web.address[1]}/",
        "callback": CALLBACK,
        "loggedOut": LOGGED_OUT,
        "audience": AUDIENCE,
        "user": {"email": EMAIL, "password": PASSWORD, "connection": connection.name},
        "clients": clients,
    }


def drive(command: list[str], given: dict[str, Any], directory: Path, environment: dict[str, str]) -> Any:
    """Run a driver with the name of a file that contains its input, and return the JSON that it prints."""
    file = directory / "given.json"
    file.write_text(json.dumps(given))
    # pyoidc needs this directory, because pyoidc writes its keys to `static/jwks.json` below the working directory.
    (directory / "static").mkdir(exist_ok=True)
    driven = subprocess.run([*command, str(file)], cwd=directory, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert driven.returncode == 0, driven.stderr + driven.stdout
    return json.loads(driven.stdout)


def _client(tenant: Tenant, kind: str, things: ApiResource) -> dict[str, str]:
    grants = [grant for grant in GRANTS if kind != "public" or grant != "client_credentials"]
    columns: dict[str, Any] = {
        "tenant_id": tenant.pk,
        "name": f"Application ({kind})",
        "grant_types": grants,
        "redirect_uris": CALLBACK,
        "post_logout_redirect_uris": LOGGED_OUT,
        "settings": {"refresh_token": {"rotation_type": "rotating", "expiration_type": "expiring"}},
    }
    if kind == "assertion":
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        client = create_client_with_credentials(methods={"private_key_jwt": [_registered(key)]}, **columns)
        known = {"id": client.client_id, "key": _pem(key)}
    else:
        client, secret = create_client(token_endpoint_auth_method=METHODS[kind], **columns)
        known = {"id": client.client_id, "secret": secret}
    if kind != "public":
        create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=things, scopes=["read:things"])
    return known


def _registered(key: rsa.RSAPrivateKey) -> NewCredential:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()
    return NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=pem, algorithm="RS256")


def _pem(key: rsa.RSAPrivateKey) -> str:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
