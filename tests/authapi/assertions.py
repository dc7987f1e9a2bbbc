"""Clients that authenticate with their own keys, and the valid and invalid assertions that they sign."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc import jwt
from joserfc.jwk import RSAKey

from authapi.client_auth.assertion import ASSERTION_TYPE
from authapi.client_auth.signatures import ALGORITHMS
from authapi.models import ClientCredential
from authapi.services.api_resources import ensure_management_api
from authapi.services.client_credentials import NewCredential, create_client_with_credentials
from authapi.services.client_grants import create_client_grant
from identity.models import Tenant
from tests.composed_keys import composed_private_key
from tests.factories.authapi import Registered, host_of


@cache
def private_key(name: str = "first") -> rsa.RSAPrivateKey:
    """Return the private key of this name; each key is created once."""
    return composed_private_key()


def public_pem(name: str = "first") -> str:
    encoded = private_key(name).public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return encoded.decode()


@dataclass(frozen=True)
class Signer:
    """A client with the grant for events. It authenticates with assertions signed by its registered keys."""

    tenant: Tenant
    registered: Registered

    def assertion(self, *, algorithm: str = "RS256", key: str = "first", header: dict[str, Any] | None = None, **changes: Any) -> str:
        """Return an assertion with the claims that client libraries send. `changes` overrides them; None removes a claim."""
        now = int(time.time())
        claims = {
            "iss": self.registered.client_id,
            "sub": self.registered.client_id,
            "aud": host_of(self.tenant).issuer,
            "iat": now,
            "exp": now + 180,
            "jti": secrets.token_urlsafe(16),
        }
        claims = {name: value for name, value in (claims | changes).items() if value is not None}
        return jwt.encode({"alg": algorithm, **(header or {})}, claims, RSAKey.import_key(private_key(key)), algorithms=[algorithm])

    def form(self, assertion: str, **changes: Any) -> dict[str, Any]:
        fields = {
            "grant_type": "client_credentials",
            "client_id": self.registered.client_id,
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": assertion,
            "audience": f"{host_of(self.tenant).base_url}/",
        }
        return {name: value for name, value in (fields | changes).items() if value is not None}


def signer(tenant: Tenant, *, algorithm: str = ALGORITHMS[0], keys: tuple[str, ...] = ("first",)) -> Signer:
    """Create a client of the tenant that authenticates with assertions signed by these keys."""
    new = [NewCredential(type=ClientCredential.Type.PUBLIC_KEY, pem=public_pem(key), algorithm=algorithm, name=key) for key in keys]
    client = create_client_with_credentials(tenant_id=tenant.pk, name="Signer", methods={"private_key_jwt": new})
    resource = ensure_management_api(tenant.pk)
    create_client_grant(tenant_id=tenant.pk, client_id=client.client_id, api_resource=resource, scopes=["read:events"])
    return Signer(tenant, Registered(client, ""))
