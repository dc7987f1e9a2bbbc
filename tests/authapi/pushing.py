"""Helpers that push authorization requests and continue with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from authapi.models import Client
from identity.models import Tenant
from tests.authapi.asgi_client import Received, post
from tests.factories.sign_in import CALLBACK

PAR = "/oauth/par"


@dataclass(frozen=True)
class Pusher:
    """A client with its secret that pushes requests."""

    tenant: Tenant
    client: Client
    secret: str

    def form(self, **changes: Any) -> dict[str, Any]:
        """Return the fields of a valid request. `changes` overrides them; None removes a field."""
        fields = {
            "client_id": self.client.client_id,
            "client_secret": self.secret,
            "response_type": "code",
            "redirect_uri": CALLBACK,
            "scope": "openid",
            "state": "pushed-state",
        }
        return {name: value for name, value in (fields | changes).items() if value is not None}

    def push(self, *, headers: Mapping[str, str] | None = None, as_json: bool = False, **changes: Any) -> Received:
        return post(PAR, self.tenant, self.form(**changes), headers=headers, as_json=as_json)

    def handle(self, **changes: Any) -> str:
        """Push a valid request, and return its handle."""
        answer = self.push(**changes)
        assert answer.status == 201, answer.body
        return str(answer.json()["request_uri"])
