"""What a user's profile tells, scope by scope (OpenID Connect Core 1.0, 5.1 and 5.4): in id tokens and at `/userinfo` alike."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from foundation.timestamps import wire_time
from identity.documents.user import user_document
from identity.models import User

_PROFILE = ("name", "nickname", "given_name", "family_name", "picture", "preferred_username", "updated_at")
# Scopes for the profile as a whole or for one claim of it, as upstream clients ask for them.
CLAIMS_OF_SCOPE: dict[str, tuple[str, ...]] = {
    "profile": _PROFILE,
    "email": ("email", "email_verified"),
    "phone": ("phone_number", "phone_number_verified"),
    **{
        name: (name,) for name in ("name", "given_name", "family_name", "nickname", "picture", "email_verified", "created_at", "identities")
    },
}
# Scopes that no API has to know. `address` is taken and tells nothing: no profile holds one.
SIGN_IN_SCOPES = frozenset({"openid", "address", "offline_access", "online_access", *CLAIMS_OF_SCOPE})


@dataclass(frozen=True)
class ProfileSwitches:
    """`writes_times_as_text`: `updated_at` is ISO 8601 text. `takes_query_token`: `/userinfo` takes a token in its address."""

    writes_times_as_text: bool = False
    takes_query_token: bool = False


def profile_switches(settings: Mapping[str, Any]) -> ProfileSwitches:
    """Return the switches of a client with these settings.

    Under a compliance level `updated_at` is always a number, and no token stands in an address (contract, 3.3).
    """
    is_ordinary = (settings.get("compliance_level") or "none") == "none"
    return ProfileSwitches(
        writes_times_as_text=is_ordinary and settings.get("updated_at_as_text") is True,
        takes_query_token=is_ordinary,
    )


def profile_claims(user: User, scopes: Collection[str], *, writes_times_as_text: bool = False) -> dict[str, Any]:
    """Return what the user is now, as far as `scopes` open it; what is not known is left out. `sub` is not in it."""
    wanted = {claim for scope in scopes for claim in CLAIMS_OF_SCOPE.get(scope, ())}
    known = _known(user)
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
        "created_at": wire_time(user.created_at),
    }
