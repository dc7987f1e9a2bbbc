"""Access tokens as they are issued: what a grant decided, and the signed token that comes of it. A JWT is stored nowhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from joserfc import jws

from authapi.models import Client
from authapi.tenant_settings import sign_in_settings
from authapi.tokens.claims import TokenOrder, new_jti, token_claims, token_header
from authapi.tokens.keys import signing_key
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
    opaque: str = field(default="", repr=False)


def minted(issue: Issue, *, client: Client, host: HostMatch) -> str:
    """Return the access token, signed now where it is a JWT."""
    if issue.opaque:
        return issue.opaque
    order = TokenOrder(
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
    )
    return mint(order, tenant_id=host.tenant_id)


def mint(order: TokenOrder, *, tenant_id: str) -> str:
    """Sign an access token with the tenant's current key. Nothing is stored."""
    kid, key = signing_key(tenant_id)
    payload = orjson.dumps(token_claims(order, now=int(time.time())))
    return jws.serialize_compact(token_header(order, kid=kid), payload, key, algorithms=["RS256"])


def organization_claims(organization: Organization | None, tenant_id: str) -> dict[str, str]:
    """Return what every token says of an organization: `org_id`, and `org_name` where the tenant names organizations in logins."""
    if organization is None:
        return {}
    claims = {"org_id": organization.pk}
    if sign_in_settings(tenant_id).takes_organization_names:
        claims["org_name"] = organization.name.lower()
    return claims
