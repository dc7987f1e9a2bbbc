"""Makes access tokens: takes the decision of a grant and returns the signed token. JWTs are not stored."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from authapi.models import Client
from authapi.tenant_settings import sign_in_settings
from authapi.tokens.claims import TokenOrder, new_jti, token_claims, token_kind
from authapi.tokens.fast_signing import Signing
from authapi.tokens.signing import DEFAULT, Signature, signing_of
from identity.hosts import HostMatch
from identity.models import Organization


@dataclass(frozen=True)
class Issue:
    """One access token to make: its subject, API and scopes. `grant` is the `gty` claim of the default dialect.

    `opaque` is the token itself if it is not a JWT. An opaque token is already stored, and the other fields describe this token.
    """

    subject: str
    audience: str
    scopes: tuple[str, ...]
    grant: str
    seconds: int
    dialect: str
    jti: str = field(default_factory=new_jti)
    userinfo: str = ""
    permissions: tuple[str, ...] | None = None
    organization: Mapping[str, str] = field(default_factory=dict)
    confirmation: Mapping[str, Any] | None = None
    signature: Signature = DEFAULT
    further: Mapping[str, Any] = field(default_factory=dict)
    # The actor that acts for the subject (RFC 8693, 4.1).
    actor: Mapping[str, Any] | None = None
    opaque: str = field(default="", repr=False)


def minted(issue: Issue, *, client: Client, host: HostMatch) -> str:
    """Return the access token; a JWT is signed now."""
    return issue.opaque or mint(token_order(issue, client=client, host=host), tenant_id=host.tenant_id, signature=issue.signature)


def token_order(issue: Issue, *, client: Client, host: HostMatch) -> TokenOrder:
    """Return everything that decides the contents of a JWT."""
    return TokenOrder(
        issuer=host.issuer,
        subject=issue.subject,
        audience=issue.audience,
        client_id=client.client_id,
        client_version=client.auth_version,
        scopes=issue.scopes,
        grant=issue.grant,
        jti=issue.jti,
        seconds=issue.seconds,
        dialect=issue.dialect,
        userinfo=issue.userinfo,
        permissions=issue.permissions,
        organization=issue.organization,
        confirmation=issue.confirmation,
        further=issue.further,
        actor=issue.actor,
    )


def mint(order: TokenOrder, *, tenant_id: str, signature: Signature = DEFAULT) -> str:
    """Sign an access token: with the secret in `signature` if there is one, otherwise with the tenant's current key. Stores nothing."""
    return signing_of_order(order, tenant_id=tenant_id, signature=signature)()


def signing_of_order(order: TokenOrder, *, tenant_id: str, signature: Signature = DEFAULT) -> Signing:
    """Return a function that signs an access token."""
    payload = orjson.dumps(token_claims(order, now=int(time.time())))
    return signing_of(payload, {"typ": token_kind(order)}, signature, tenant_id=tenant_id)


def organization_claims(organization: Organization | None, tenant_id: str) -> dict[str, str]:
    """Return the organization claims of every token: `org_id`, and `org_name` if the tenant allows names of organizations in logins."""
    if organization is None:
        return {}
    claims = {"org_id": organization.pk}
    if sign_in_settings(tenant_id).takes_organization_names:
        claims["org_name"] = organization.name.lower()
    return claims
