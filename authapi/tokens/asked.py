"""What few requests ask for beside scopes: authorization details, single claims, a context of authentication. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Claim of a JWT that also opens the profile: the further claims of the profile, by name. A JWT is nowhere stored.
USERINFO_CLAIMS = "userinfo_claims"
DETAILS = "authorization_details"


@dataclass(frozen=True)
class Asked:
    """What was granted of it. `id_token_claims` and `userinfo_claims` are names of the profile, whatever the scopes open.

    `acr` is the context that the login has met. Issues of logins that ask for none of this have None in its place.
    """

    details: tuple[Mapping[str, Any], ...] = ()
    id_token_claims: tuple[str, ...] = ()
    userinfo_claims: tuple[str, ...] = ()
    acr: str = ""

    @property
    def state(self) -> dict[str, Any]:
        """What a row keeps, as `asked_of` reads it back."""
        members = {
            "details": list(self.details),
            "id_token": list(self.id_token_claims),
            "userinfo": list(self.userinfo_claims),
            "acr": self.acr,
        }
        return {name: value for name, value in members.items() if value}

    @property
    def token_claims(self) -> dict[str, Any]:
        """What an access token says of it (RFC 9396, 9.1; RFC 9068, 2.2.1)."""
        members = {DETAILS: list(self.details), USERINFO_CLAIMS: list(self.userinfo_claims), "acr": self.acr}
        return {name: value for name, value in members.items() if value}


def asked_of(state: Mapping[str, Any] | None) -> Asked | None:
    """Return what a row has kept; None for a login that asked for none of it."""
    if not state:
        return None
    return Asked(
        details=tuple(state.get("details", ())),
        id_token_claims=tuple(state.get("id_token", ())),
        userinfo_claims=tuple(state.get("userinfo", ())),
        acr=state.get("acr", ""),
    )
