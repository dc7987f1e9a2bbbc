"""Unmodified OpenID Connect clients log users in with every flow, over TLS with a private authority."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from config.launcher.peers import PLACE
from identity.models import Connection, Tenant, User
from tests.peers.sign_in_world import AUDIENCE, EMAIL, LOGGED_OUT, described, drive, serving

pytestmark = pytest.mark.peer

DRIVERS = Path(__file__).parent / "drivers"


def test_openid_client_completes_every_flow(tenant: Tenant, database_connection: Connection, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (PLACE / "node_modules" / "openid-client").exists():
        pytest.skip("openid-client is not installed: make test-peers")
    # Copy the driver beside the packages: Node searches for packages in the directory of the program.
    driver = [shutil.copy(DRIVERS / name, PLACE) for name in ("browser.mjs", "openid_client.mjs")][-1]
    with serving(tenant, tmp_path) as (web, certificate):
        given = described(tenant, database_connection, web)
        seen = drive([node, str(driver)], given, tmp_path, os.environ | {"NODE_EXTRA_CA_CERTS": str(certificate.authority)})

    for kind in ("public", "post", "basic", "assertion"):
        assert seen[f"code, {kind}"] == [EMAIL, EMAIL, True, "openid profile email offline_access read:things", "bearer", 86400]
        assert seen[f"refresh, {kind}"] == [True, True, "invalid_grant", "invalid_grant"]
    for kind in ("post", "basic", "assertion"):
        assert seen[f"client_credentials, {kind}"] == [True, 86400]
    assert seen["revoked"] == "invalid_grant"
    assert seen["code twice"] == "invalid_grant"
    assert seen["silent, with a session"] == EMAIL
    assert seen["silent, without"] == ["login_required", "Login required"]
    assert seen["max_age"] == "number"
    assert seen["forms before, after"] == [1, 2]
    assert seen["logged out"] == f"{LOGGED_OUT}?state=st"
    assert seen["silent, after logout"] == "login_required"
    assert seen["form_post"] == seen["id_token"] == seen["code id_token"] == EMAIL
    assert seen["password"] == [True, "password"]
    assert seen["wrong password"] == "invalid_grant"


def test_authlib_completes_every_flow(tenant: Tenant, database_connection: Connection, tmp_path: Path) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python clients are not installed: make test-peers")
    with serving(tenant, tmp_path) as (web, certificate):
        given = described(tenant, database_connection, web)
        command = [str(python), str(DRIVERS / "authlib_flows.py")]
        seen = drive(command, given, tmp_path, os.environ | {"REQUESTS_CA_BUNDLE": str(certificate.authority)})

    for kind in ("public", "post", "basic", "assertion"):
        assert seen[kind] == [EMAIL, EMAIL, True, "invalid_grant"]
    for kind in ("post", "basic", "assertion"):
        assert seen[f"client_credentials, {kind}"] == "Bearer"
    assert seen["password"] is True
    assert seen["wrong password"] == "invalid_grant"
    assert given["audience"] == AUDIENCE


def test_passport_auth0_logs_a_user_in(tenant: Tenant, database_connection: Connection, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (PLACE / "node_modules" / "passport-auth0").exists():
        pytest.skip("passport-auth0 is not installed: make test-peers")
    driver = [shutil.copy(DRIVERS / name, PLACE) for name in ("browser.mjs", "passport_auth0.mjs")][-1]
    with serving(tenant, tmp_path) as (web, certificate):
        given = described(tenant, database_connection, web)
        seen = drive([node, str(driver)], given, tmp_path, os.environ | {"NODE_EXTRA_CA_CERTS": str(certificate.authority)})
        # The library sends the access token in the URL of /userinfo.
        written = web.log.read_text()
    user = User.objects.of(tenant.pk).get(email=EMAIL)
    told = {"provider": user.provider, "id": user.user_id, "email": EMAIL, "name": user.name, "updated": "number", "hasIdToken": True}
    assert seen == told
    assert "access_token" not in written


def test_clients_that_check_the_types_of_claims_log_a_user_in(tenant: Tenant, database_connection: Connection, tmp_path: Path) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not list(PLACE.glob("python/lib/*/site-packages/idpyoidc")):
        pytest.skip("pyoidc and idpyoidc are not installed: make test-peers")
    with serving(tenant, tmp_path) as (web, certificate):
        given = described(tenant, database_connection, web)
        command = [str(python), str(DRIVERS / "strict_clients.py")]
        seen = drive(command, given, tmp_path, os.environ | {"REQUESTS_CA_BUNDLE": str(certificate.authority)})
    expected = [EMAIL, int(User.objects.of(tenant.pk).get(email=EMAIL).updated_at.timestamp())]
    told = {"id_token": expected, "userinfo": expected, "sub": True}
    assert seen == {"pyoidc": told, "idpyoidc": told}
