"""A client whose users log in with a code, by mail or by text message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest

from authapi.grants.passwordless import PasswordlessGrant
from authapi.models import Client
from authapi.services.clients import create_client
from authapi.views import HOT_ENDPOINTS
from identity.models import Connection, Tenant
from identity.services.connections import create_connection, update_connection
from tests.authapi.accounts.conftest import _fresh_memory  # noqa: F401  (the same buckets and settings)
from tests.authapi.asgi_client import FORM, Received, ask_token, send
from tests.authapi.passwordless.messages import last_code
from tests.factories.sign_in import CALLBACK

ADA = "ada@example.test"
NUMBER = "+4915112345678"
HOME = "192.0.2.1"


@dataclass
class Door:
    """A tenant with one application and two passwordless connections."""

    tenant: Tenant
    client: Client
    secret: str
    email: Connection
    sms: Connection

    def proof(self) -> dict[str, str]:
        return {"client_id": self.client.client_id, **({"client_secret": self.secret} if self.secret else {})}

    def post(self, path: str, body: Mapping[str, Any], *, kind: str = "application/json", address: str = HOME, **headers: str) -> Received:
        raw = urlencode(body) if kind == FORM else json.dumps(body)
        lines = {"Content-Type": kind, "User-Agent": "Test/1.0", **{name.replace("_", "-"): value for name, value in headers.items()}}
        host = f"{self.tenant.pk}.example.test"
        return send(HOT_ENDPOINTS[path], "POST", host=host, headers=lines, chunks=(raw.encode(),), address=address)

    def start(self, *, address: str = HOME, **changes: Any) -> Received:
        body = {**self.proof(), "connection": "email", "email": ADA, "send": "code", **changes}
        return self.post("/passwordless/start", {name: value for name, value in body.items() if value is not None}, address=address)

    def code(self, **changes: Any) -> str:
        """Request a code and return it."""
        answer = self.start(**changes)
        assert answer.status == 200, answer.body
        return last_code(self.tenant.pk)

    def redeem(self, code: str, *, address: str = HOME, headers: Any = None, **changes: Any) -> Received:
        fields = {**self.proof(), "grant_type": PasswordlessGrant.name, "username": ADA, "realm": "email", "otp": code, "scope": "openid"}
        form = {name: value for name, value in {**fields, **changes}.items() if value is not None}
        return ask_token(self.tenant, form, address=address, headers=headers)


def new_door(tenant: Tenant, **client: Any) -> Door:
    grants = ["authorization_code", "refresh_token", PasswordlessGrant.name]
    made, secret = create_client(tenant_id=tenant.pk, **{"name": "Web shop", "grant_types": grants, "redirect_uris": CALLBACK, **client})
    enabled = [made.client_id]
    email = create_connection(tenant_id=tenant.pk, name="email", strategy="email", enabled_clients=enabled, options={})
    sms = create_connection(tenant_id=tenant.pk, name="sms", strategy="sms", enabled_clients=enabled, options={})
    return Door(tenant, made, secret, email, sms)


@pytest.fixture
def door(tenant: Tenant, settings: Any) -> Door:
    settings.SMS_SENDER = {"kind": "console"}
    return new_door(tenant)


def set_options(connection: Connection, **options: Any) -> Connection:
    changes = {"options": {**connection.options, **options}}
    return update_connection(tenant_id=connection.tenant_id, connection_id=connection.pk, changes=changes)
