"""What a login may request in addition to scopes: authorization details, single claims, and a context of authentication. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Name of a claim in JWTs that are also valid at `/userinfo`. The claim lists the profile claims that were requested by name, because a JWT
# has no row that could store them.
USERINFO_CLAIMS = "userinfo_claims"
DETAILS = "authorization_details"


@dataclass(frozen=True)
class Asked:
    """What a login was granted in addition to scopes.

    `id_token_claims` and `userinfo_claims` may contain names of claims that no granted scope includes. `acr` is the context that the login
    has met. A login that requested nothing in addition to scopes has None in place of an `Asked`.
    """

    details: tuple[Mapping[str, Any], ...] = ()
    id_token_claims: tuple[str, ...] = ()
    userinfo_claims: tuple[str, ...] = ()
    acr: str = ""

    @property
    def state(self) -> dict[str, Any]:
        """The JSON that a row stores; `asked_of` converts the JSON back."""
        members = {
            "details": list(self.details),
            "id_token": list(self.id_token_claims),
            "userinfo": list(self.userinfo_claims),
            "acr": self.acr,
        }
        return {name: value for name, value in members.items() if value}

    @property
    def token_claims(self) -> dict[str, Any]:
        """The claims by which an access token states these grants (RFC 9396, 9.1; RFC 9068, 2.2.1)."""
        members = {DETAILS: list(self.details), USERINFO_CLAIMS: list(self.userinfo_claims), "acr": self.acr}
        return {name: value for name, value in members.items() if value}


def asked_of(state: Mapping[str, Any] | None) -> Asked | None:
    """Return the `Asked` that a row stores as JSON; None for a login that requested nothing in addition to scopes."""
    if not state:
        return None
    return Asked(
        details=tuple(state.get("details", ())),
        id_token_claims=tuple(state.get("id_token", ())),
        userinfo_claims=tuple(state.get("userinfo", ())),
        acr=state.get("acr", ""),
    )
