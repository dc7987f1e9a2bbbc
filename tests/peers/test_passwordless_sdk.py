"""Unmodified clients for Python and Node request codes and links, and log users in with them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from authapi.grants.passwordless import PasswordlessGrant
from authapi.services.clients import create_client
from authapi.services.tenant_settings import update_tenant_settings
from config.launcher.peers import PLACE
from identity.models import Tenant, User
from identity.services.connections import create_connection
from tests.factories.models.authapi import ApiResourceFactory
from tests.peers.outbox import Outbox
from tests.peers.sign_in_world import AUDIENCE, CALLBACK, drive, serving

pytestmark = pytest.mark.peer

DRIVERS = Path(__file__).parent / "drivers"
EMAIL, LINKED, FLOODED = "ada@example.test", "bob@example.test", "carol@example.test"
NUMBER = "+4915112345678"
TOKENS = ["access_token", "expires_in", "id_token", "scope", "token_type"]


def described(tenant: Tenant) -> dict[str, Any]:
    """Create a client with logins by email and by text message. Return the values that a driver needs."""
    grants = ["authorization_code", PasswordlessGrant.name]
    client, secret = create_client(
        tenant_id=tenant.pk,
        name="Web shop",
        grant_types=grants,
        redirect_uris=CALLBACK,
        token_endpoint_auth_method="client_secret_post",
    )
    for strategy in ("email", "sms"):
        create_connection(tenant_id=tenant.pk, name=strategy, strategy=strategy, enabled_clients=[client.client_id], options={})
    ApiResourceFactory.create(tenant_id=tenant.pk, identifier=AUDIENCE, name="Things", scopes=[])
    update_tenant_settings(tenant_id=tenant.pk, changes={"default_audience": AUDIENCE})
    people = {"email": EMAIL, "linked": LINKED, "flooded": FLOODED, "number": NUMBER}
    return {"client": client.client_id, "secret": secret, "audience": AUDIENCE, "callback": CALLBACK, **people}


def received(outbox: Outbox) -> dict[str, str]:
    codes = {"mailed": outbox.mailed_code(EMAIL), "texted": outbox.texted_code(NUMBER)}
    return {**codes, "wrong": next(code for code in ("000000", "111111", "222222") if code not in codes.values())}


def both_steps(tenant: Tenant, outbox: Outbox, command: list[str], authority: str, directory: Path) -> tuple[Any, Any]:
    """Let a driver request messages, then send these messages, and let the driver log in with their contents. Return both results."""
    given = described(tenant)
    with serving(tenant, directory, **outbox.urls) as (web, certificate):
        given["domain"] = f"localhost:{web.address[1]}"
        environment = os.environ | {authority: str(certificate.authority)}
        asked = drive(command, {**given, "step": "ask"}, directory, environment)
        return asked, drive(command, {**given, **received(outbox), "step": "log in"}, directory, environment)


def test_auth0_python_logs_users_in_without_a_password(tenant: Tenant, settings: Any, tmp_path: Path) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("the Python clients are not installed: make test-peers")
    outbox = Outbox(tmp_path / "outbox", settings, tenant_id=tenant.pk)
    command = [str(python), str(DRIVERS / "passwordless.py")]
    asked, seen = both_steps(tenant, outbox, command, "REQUESTS_CA_BUNDLE", tmp_path)

    identifiers = [asked[name].pop("_id") for name in ("mailed code", "mailed link", "texted code")]
    assert len(set(identifiers)) == 3
    assert asked["mailed code"] == {"email": EMAIL, "email_verified": False}
    assert asked["mailed link"] == {"email": LINKED, "email_verified": False}
    assert asked["texted code"] == {"phone_number": NUMBER, "phone_verified": False}
    assert outbox.mailed_link(LINKED)
    for name, code in (
        ("invalid address", "bad.request"),
        ("invalid number", "bad.phone_number"),
        ("unknown way of sending", "bad.request"),
        ("invalid parameters", "bad.authParams"),
        ("unknown client", "bad.client_id"),
    ):
        status, error, text = asked[name]
        assert (status, error) == (400, code), name
        assert text
    assert asked["flood"] == ["too many", 429, "too_many_requests", True]

    assert seen["by mail"] == seen["by text"] == TOKENS
    assert seen["wrong"] == seen["again"] == [403, "invalid_grant", "Wrong email or verification code."]
    assert seen["wrong number"] == [403, "invalid_grant", "Wrong phone number or verification code."]
    assert seen["unknown realm"] == [403, "invalid_grant", "Unknown or invalid realm"]
    users = User.objects.of(tenant.pk)
    assert sorted(users.values_list("email", "phone_number"), key=str) == [(EMAIL, None), (None, NUMBER)]


def test_the_older_client_for_node_logs_users_in_without_a_password(tenant: Tenant, settings: Any, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (PLACE / "node_modules" / "auth0-legacy").exists():
        pytest.skip("the client for Node is not installed: make test-peers")
    outbox = Outbox(tmp_path / "outbox", settings, tenant_id=tenant.pk)
    # Copy the driver beside the packages: Node searches for packages in the directory of the program.
    driver = shutil.copy(DRIVERS / "passwordless.cjs", PLACE)
    asked, seen = both_steps(tenant, outbox, [node, str(driver)], "NODE_EXTRA_CA_CERTS", tmp_path)

    assert asked["mailed"] == asked["texted"] == "done"
    assert asked["invalid number"][:3] == ["AuthApiError", 400, "bad.phone_number"]
    assert seen["wrong"] == ["AuthApiError", 403, "invalid_grant", "Wrong email or verification code."]
    assert seen["by mail"] == seen["by text"] == TOKENS
