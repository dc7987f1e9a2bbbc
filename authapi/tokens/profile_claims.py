"""What a user's profile tells, scope by scope (OpenID Connect Core 1.0, 5.1 and 5.4): in id tokens and at `/userinfo` alike."""

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
# The columns of a user that claims are made of.
SHOWN = (
    "name", "nickname", "given_name", "family_name", "picture", "username", "email", "email_verified", "phone_number", "phone_verified",
    "updated_at", "created_at",
)  # fmt: skip
# Scopes for the profile as a whole or for one claim of it, as upstream clients ask for them.
CLAIMS_OF_SCOPE: dict[str, tuple[str, ...]] = {
    "profile": _PROFILE,
    "email": ("email", "email_verified"),
    "phone": ("phone_number", "phone_number_verified"),
    **{
        name: (name,) for name in ("name", "given_name", "family_name", "nickname", "picture", "email_verified", "created_at", "identities")
    },
}
# What a client may name one by one in the parameter `claims`.
PROFILE_CLAIMS = frozenset(claim for claims in CLAIMS_OF_SCOPE.values() for claim in claims)
# Scopes that no API has to know. `address` is taken and tells nothing: no profile holds one.
SIGN_IN_SCOPES = frozenset({"openid", "address", "offline_access", "online_access", *CLAIMS_OF_SCOPE})


@dataclass(frozen=True)
class ProfileSwitches:
    """What a client decides about its answers at `/userinfo`.

    `writes_times_as_text`: `updated_at` is ISO 8601 text. `level` is its compliance level.
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
    """Return what the user is now, as far as `scopes` open it or it is `named`; what is not known is left out. `sub` is not in it."""
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
        # They are read from the database, and few clients ask.
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
        # An address that is not there is not verified either.
        "email_verified": user.email_verified if user.email else None,
        "phone_number": user.phone_number,
        "phone_number_verified": user.phone_verified if user.phone_number else None,
        # OpenID Connect Core 1.0, 5.1: a JSON number of seconds. Strict clients refuse a login whose claim is text.
        "updated_at": int(user.updated_at.timestamp()),
    }
