"""Clients, APIs and tokens for tests, created by the product's own services and committed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from authapi import client_auth
from authapi.models import Client
from authapi.protocols.oauth.engine import server
from authapi.services.api_resources import ensure_management_api
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client
from authapi.token_request import TokenRequest
from identity.hosts import HostMatch, resolve_host
from identity.models import Tenant


@dataclass(frozen=True)
class Registered:
    """A client for tests, with its secret in plain text."""

    client: Client
    secret: str

    @property
    def client_id(self) -> str:
        return self.client.client_id


def host_of(tenant: Tenant) -> HostMatch:
    """Return the tenant and host that a request to the tenant's own domain resolves to."""
    match = resolve_host(f"{tenant.pk}.example.test")
    assert match is not None
    return match


def global_client(tenant: Tenant, **changes: object) -> Registered:
    """Create a client that may use the whole management interface."""
    client, secret = create_client(tenant_id=tenant.pk, name="Everything", is_global=True, **changes)  # type: ignore[arg-type]
    return Registered(client, secret)


def granted_client(tenant: Tenant, scopes: Iterable[str] = ("read:events",), **changes: object) -> Registered:
    """Create an ordinary client with a client grant for the management interface."""
    client, secret = create_client(tenant_id=tenant.pk, name="Reader", **changes)  # type: ignore[arg-type]
    resource = ensure_management_api(tenant.pk)
    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=resource, scopes=scopes)
    return Registered(client, secret)


def access_token(tenant: Tenant, registered: Registered, **form: str) -> str:
    """Return an access token as the token endpoint would issue it. Its audience is the management interface."""
    host = host_of(tenant)
    fields = {"grant_type": "client_credentials", "audience": f"{host.base_url}/", **form}
    credentials = {"client_id": registered.client_id, "client_secret": registered.secret}
    request = TokenRequest(host=host, address="192.0.2.1", headers={}, form=fields | credentials)
    answer = server().exchange(request, client_auth.authenticate(request))
    return str(json.loads(answer)["access_token"])


def events_token(tenant: Tenant, *scopes: str) -> str:
    """Return a token of a new client with exactly these scopes, or with `read:events` if none is named."""
    return access_token(tenant, granted_client(tenant, scopes or ("read:events",)))
