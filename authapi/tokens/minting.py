"""Access tokens as they are issued: what a grant decided, and the signed token that comes of it. A JWT is stored nowhere."""

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
    """One access token to be: for whom, at which API, with which scopes. `grant` is the `gty` of the default dialect.

    `opaque` is the token itself where it is no JWT: then it is stored already, and the rest tells what it stands for.
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
    # The actor for the subject (RFC 8693, 4.1).
    actor: Mapping[str, Any] | None = None
    opaque: str = field(default="", repr=False)


def minted(issue: Issue, *, client: Client, host: HostMatch) -> str:
    """Return the access token, signed now where it is a JWT."""
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
    """Sign an access token, with the tenant's current key unless the API has a secret. Nothing is stored."""
    return signing_of_order(order, tenant_id=tenant_id, signature=signature)()


def signing_of_order(order: TokenOrder, *, tenant_id: str, signature: Signature = DEFAULT) -> Signing:
    """Return what signs an access token."""
    payload = orjson.dumps(token_claims(order, now=int(time.time())))
    return signing_of(payload, {"typ": token_kind(order)}, signature, tenant_id=tenant_id)


def organization_claims(organization: Organization | None, tenant_id: str) -> dict[str, str]:
    """Return what every token says of an organization: `org_id`, and `org_name` where the tenant names organizations in logins."""
    if organization is None:
        return {}
    claims = {"org_id": organization.pk}
    if sign_in_settings(tenant_id).takes_organization_names:
        claims["org_name"] = organization.name.lower()
    return claims
