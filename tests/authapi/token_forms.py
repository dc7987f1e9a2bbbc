"""Form fields of requests to the token endpoint."""

from __future__ import annotations

import base64
from typing import Any

from identity.models import Tenant
from tests.factories.authapi import Registered, host_of


def form_of(tenant: Tenant, registered: Registered, **changes: Any) -> dict[str, Any]:
    """Return the fields of a valid request. `changes` overrides them; None removes a field."""
    fields = {
        "grant_type": "client_credentials",
        "client_id": registered.client_id,
        "client_secret": registered.secret,
        "audience": f"{host_of(tenant).base_url}/",
    }
    return {name: value for name, value in (fields | changes).items() if value is not None}


def basic(client_id: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()}
