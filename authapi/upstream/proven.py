"""What a provider has proven about a user, by any protocol. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Proven:
    """A verified login: its claims, named as in OpenID Connect, and the data with which a logout later ends the login at the provider."""

    claims: Mapping[str, Any]
    userinfo: Mapping[str, Any] = field(default_factory=dict)
    # An id token, or the name and session index that a logout request repeats. The session stores this value encrypted.
    kept: Mapping[str, Any] = field(default_factory=dict, repr=False)
    # The claims as the provider sent them, by part (`sent_claims`): the connection has not mapped them yet. A provider of OAuth 2.0 has one
    # part: the result of the mapping by the expressions of the provider.
    sent: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def subject(self) -> str:
        return str(self.claims["sub"])
