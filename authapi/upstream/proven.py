"""What a provider elsewhere has proven about a user, over any protocol. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Proven:
    """Who logged in: claims in the words of OpenID Connect, and what ends the login at the provider later."""

    claims: Mapping[str, Any]
    userinfo: Mapping[str, Any] = field(default_factory=dict)
    # Kept encrypted with the session: an id token, or the name and the session that a logout request repeats.
    kept: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def subject(self) -> str:
        return str(self.claims["sub"])
