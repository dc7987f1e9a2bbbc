"""The document of a user."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from foundation.shapes import values
from identity.models import LinkedIdentity, User
from identity.models.connections import SOCIAL_STRATEGIES
from identity.shapes import PROFILE, USER


def user_document(user: User, linked: Sequence[LinkedIdentity] | None = None) -> dict[str, Any]:
    """Return the complete profile without empty fields. `blocked` is absent until it is set for the first time.

    `linked` contains the linked identities in order of linking. Without `linked`, the identities are read from the database.
    """
    identities = list(user.linked_identities.select_related("connection").order_by("pk")) if linked is None else linked
    made = {"identities": _identities(user, identities), "logins_count": user.logins_count or None}
    return values(partial(getattr, user), USER.documented, **_verified(user), **made)


def profile_data(user: User) -> dict[str, Any]:
    """Return the profile of a user in the form of the member `profileData` of an identity."""
    return values(partial(getattr, user), PROFILE.documented, **_verified(user))


def _verified(user: User) -> dict[str, bool | None]:
    """Return whether email address and phone number are verified; None for a missing value."""
    return {
        "email_verified": user.email_verified if user.email else None,
        "phone_verified": user.phone_verified if user.phone_number else None,
    }


def _identities(user: User, linked: Sequence[LinkedIdentity]) -> list[dict[str, Any]]:
    primary = _identity(user.connection.name, user.provider, user.identifier)
    if linked:
        primary["profileData"] = profile_data(user)
    others = [
        {**_identity(identity.connection.name, identity.provider, identity.identifier), "profileData": identity.profile_data}
        for identity in linked
    ]
    return [primary, *others]


def _identity(connection: str, provider: str, identifier: str) -> dict[str, Any]:
    return {"connection": connection, "user_id": identifier, "provider": provider, "isSocial": provider in SOCIAL_STRATEGIES}
