"""Describes which tokens one client gets for one user after a login.

This module makes no token. Pure, but the values contain database rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from authapi.models import Client, Session
from authapi.tokens.asked import Asked
from identity.hosts import HostMatch
from identity.models import Connection, Organization, User


@dataclass(frozen=True)
class UserIssue:
    """The tokens of one user at one client. An empty `audience` means an opaque token for the profile only.

    `scopes` are the granted scopes (`authapi.grants.entitlements.user_entitlement`). `lineage` is new for each login at a client; all
    tokens of that login have it. `methods` is a list of {"name", "timestamp"}. `grant` is the `gty` claim of the default
    dialect, empty for logins in a browser. `asked` is what was granted in addition to the scopes, None for most logins.
    """

    host: HostMatch
    client: Client
    user: User
    connection: Connection
    audience: str
    scopes: tuple[str, ...]
    session: Session | None
    organization: Organization | None
    auth_time: datetime
    methods: Sequence[Mapping[str, Any]]
    nonce: str
    lineage: UUID
    confirmation: Mapping[str, Any] | None
    grant: str = ""
    asked: Asked | None = None

    @property
    def is_sign_in(self) -> bool:
        """Whether this is an OpenID Connect login, which has an id token."""
        return "openid" in self.scopes

    @property
    def wants_refresh_token(self) -> bool:
        """Whether the answer of the token endpoint contains a refresh token."""
        return "offline_access" in self.scopes or self.is_online

    @property
    def is_online(self) -> bool:
        """Whether the refresh token ends with the session."""
        return "online_access" in self.scopes and "offline_access" not in self.scopes


@dataclass(frozen=True)
class CodeParameters:
    """The parts of an authorization request that are stored with its code. The authorization endpoint has checked them."""

    redirect_uri: str
    # RFC 6749, 4.1.3: if the authorization request has a redirect URI, the exchange must repeat it.
    is_redirect_uri_given: bool
    code_challenge: str = field(default="", repr=False)
    code_challenge_method: str = ""
    # The thumbprint of the key that the exchange must prove (RFC 9449, 10), or empty.
    dpop_jkt: str = ""
