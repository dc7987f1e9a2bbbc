"""What a grant decided to issue, and the one function that turns it into an access token."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from authapi.claims import TokenOrder
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.tokens import mint


@dataclass(frozen=True)
class Issue:
    """One access token to be: for whom, at which API, with which scopes. `grant` is the `gty` of the default dialect."""

    subject: str
    audience: str
    scopes: tuple[str, ...]
    grant: str
    seconds: int
    dialect: str


def access_token(request: Any) -> str:
    """Mint the access token of an engine request whose grant has left an `Issue`."""
    issue: Issue = request.issue
    token_request: TokenRequest = request.token_request
    client: Client = request.client
    order = TokenOrder(
        issuer=token_request.host.issuer,
        subject=issue.subject,
        audience=issue.audience,
        client_id=client.client_id,
        client_version=client.auth_version,
        scopes=issue.scopes,
        grant=issue.grant,
        jti=secrets.token_urlsafe(18),
        seconds=issue.seconds,
        dialect=issue.dialect,
    )
    return mint(order, tenant_id=token_request.host.tenant_id)


def token_seconds(request: Any) -> int:
    """Return the life of the token that `access_token` mints."""
    issue: Issue = request.issue
    return issue.seconds
