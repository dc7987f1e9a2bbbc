"""A tenant at which applications can register themselves."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

from authapi.services.initial_tokens import create_initial_token
from authapi.services.tenant_settings import update_tenant_settings
from authapi.views import HOT_ENDPOINTS
from identity.models import Tenant
from tests.authapi.asgi_client import Received, send
from tests.authapi.memory import forget_all

REGISTER = "/oidc/register"
CALLBACK = "https://app.example.test/callback"


@dataclass
class Door:
    """The registration endpoint of a tenant, as an application uses it."""

    tenant: Tenant
    token: str = ""
    answer: dict[str, Any] = field(default_factory=dict)

    def send(self, method: str, *, token: str | None = None, client_id: str = "", address: str = "192.0.2.1", **members: Any) -> Received:
        token = self.token if token is None else token
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        body = json.dumps(members).encode() if method in ("POST", "PUT") else b""
        query = f"client_id={client_id}" if client_id else ""
        host = f"{self.tenant.pk}.example.test"
        return send(HOT_ENDPOINTS[REGISTER], method, host=host, headers=headers, chunks=(body,), address=address, query=query)

    def ask(self, **changes: Any) -> Received:
        """Register with valid metadata. `changes` overrides its members; None removes a member."""
        members = {"client_name": "Films", "redirect_uris": [CALLBACK], **changes}
        return self.send("POST", **{name: value for name, value in members.items() if value is not None})

    def register(self, **changes: Any) -> dict[str, Any]:
        answer = self.ask(**changes)
        assert answer.status == 201, answer.body
        self.answer = answer.json()
        return self.answer

    def manage(self, method: str, *, token: str | None = None, client_id: str | None = None) -> Received:
        """Send a request to the URL of the registration, with its token."""
        named = urlsplit(self.answer["registration_client_uri"]).query.removeprefix("client_id=") if client_id is None else client_id
        token = self.answer["registration_access_token"] if token is None else token
        return self.send(method, token=token, client_id=named)

    def replace(self, **changes: Any) -> Received:
        """Replace the current metadata with valid metadata. `changes` overrides its members; None removes a member."""
        members = {"client_id": self.answer["client_id"], "client_name": "Films", "redirect_uris": [CALLBACK], **changes}
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.answer['registration_access_token']}"}
        sent = {name: value for name, value in members.items() if value is not None}
        return send(
            HOT_ENDPOINTS[REGISTER],
            "PUT",
            host=f"{self.tenant.pk}.example.test",
            headers=headers,
            chunks=(json.dumps(sent).encode(),),
            query=f"client_id={self.answer['client_id']}",
        )


def open_registration(tenant: Tenant, *, needs_token: bool = False) -> None:
    flags = {"enable_dynamic_client_registration": True}
    update_tenant_settings(tenant_id=tenant.pk, changes={"flags": flags, "require_initial_access_token": needs_token})
    forget_all()


def initial_token(tenant: Tenant, **changes: Any) -> str:
    return create_initial_token(tenant_id=tenant.pk, **{"name": "For tests", "days": 7, **changes})[1]


@pytest.fixture
def door(tenant: Tenant) -> Door:
    open_registration(tenant)
    return Door(tenant)
