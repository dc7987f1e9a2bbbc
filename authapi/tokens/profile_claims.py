"""The claims of a user's profile by scope (OpenID Connect Core 1.0, 5.1 and 5.4), for id tokens and for `/userinfo`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from authapi.compliance.levels import NONE, has, level_of
from authapi.compliance.rules import NUMERIC_TIMES
from foundation.timestamps import wire_time
from identity.documents.user import user_document
from identity.models import User

_PROFILE = ("name", "nickname", "given_name", "family_name", "picture", "preferred_username", "updated_at")
# The columns of a user from which claims are made.
SHOWN = (
    "name", "nickname", "given_name", "family_name", "picture", "username", "email", "email_verified", "phone_number", "phone_verified",
    "updated_at", "created_at",
)  # fmt: skip
# Scopes for the whole profile or for one claim of it, as clients of the upstream service request them.
CLAIMS_OF_SCOPE: dict[str, tuple[str, ...]] = {
    "profile": _PROFILE,
    "email": ("email", "email_verified"),
    "phone": ("phone_number", "phone_number_verified"),
    **{
        name: (name,) for name in ("name", "given_name", "family_name", "nickname", "picture", "email_verified", "created_at", "identities")
    },
}
# The claims that a client may request by name in the parameter `claims`.
PROFILE_CLAIMS = frozenset(claim for claims in CLAIMS_OF_SCOPE.values() for claim in claims)
# Scopes that need no registration at an API. `address` is accepted and adds no claim, because profiles have no postal
# address.
SIGN_IN_SCOPES = frozenset({"openid", "address", "offline_access", "online_access", *CLAIMS_OF_SCOPE})


@dataclass(frozen=True)
class ProfileSwitches:
    """The settings of a client that change the responses of `/userinfo` to this client.

    With `writes_times_as_text`, the claim `updated_at` is text in ISO 8601. `level` is the compliance level of the client.
    """

    writes_times_as_text: bool = False
    level: str = NONE


def profile_switches(settings: Mapping[str, Any]) -> ProfileSwitches:
    """Return the switches of a client with these settings."""
    level = level_of(settings)
    return ProfileSwitches(
        writes_times_as_text=settings.get("updated_at_as_text") is True and not has(level, NUMERIC_TIMES),
        level=level,
    )


def profile_claims(
    user: User, scopes: Collection[str], named: Collection[str] = (), *, writes_times_as_text: bool = False
) -> dict[str, Any]:
    """Return the claims about a user that `scopes` include, and the claims in `named`. Omits empty values and `sub`."""
    wanted = {claim for scope in scopes for claim in CLAIMS_OF_SCOPE.get(scope, ())}
    if named:
        wanted.update(named)
    known = _known(user)
    if "created_at" in wanted:
        known["created_at"] = wire_time(user.created_at)
    if writes_times_as_text:
        known["updated_at"] = wire_time(user.updated_at)
    claims = {name: known[name] for name in known if name in wanted and known[name] not in (None, "")}
    if "identities" in wanted:
        # Identities need further queries, and few clients request them.
        claims["identities"] = user_document(user)["identities"]
    return claims


def _known(user: User) -> dict[str, Any]:
    return {
        "name": user.name or user.email or user.username or user.phone_number,
        "nickname": user.nickname,
        "given_name": user.given_name,
        "family_name": user.family_name,
        "preferred_username": user.username,
        "picture": user.picture,
        "email": user.email,
        # A user without an email address has no `email_verified` claim either.
        "email_verified": user.email_verified if user.email else None,
        "phone_number": user.phone_number,
        "phone_number_verified": user.phone_verified if user.phone_number else None,
        # OpenID Connect Core 1.0, 5.1: a JSON number of seconds. Strict clients refuse a login if this claim is text.
        "updated_at": int(user.updated_at.timestamp()),
    }
