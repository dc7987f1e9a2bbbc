"""What a grant decided to issue, and the one function that turns it into an access token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from authapi.edge.mtls import certificate_of
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.tokens.claims import TokenOrder, new_jti
from authapi.tokens.verifying import mint
from identity.hosts import HostMatch


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


def binding(request: TokenRequest) -> Mapping[str, Any] | None:
    """Return the `cnf` of what is issued now: a certificate that came along binds the tokens to it (RFC 8705, 3)."""
    certificate = certificate_of(request)
    return certificate.confirmation if certificate is not None else None


def access_token(request: Any) -> str:
    """Mint the access token of an engine request whose grant has left an `Issue`."""
    return minted(request.issue, client=request.client, host=request.token_request.host)


def token_seconds(request: Any) -> int:
    """Return the life of the token that `access_token` mints."""
    issue: Issue = request.issue
    return issue.seconds


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
