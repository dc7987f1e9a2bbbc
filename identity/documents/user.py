"""The document of a user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foundation.timestamps import wire_time
from identity.models import LinkedIdentity, User
from identity.models.connections import SOCIAL_STRATEGIES

_PROFILE = ("username", "name", "nickname", "given_name", "family_name", "picture", "user_metadata", "app_metadata", "multifactor")
_PROFILE_DATA = (
    "email",
    "email_verified",
    "name",
    "username",
    "given_name",
    "family_name",
    "nickname",
    "picture",
    "phone_number",
    "phone_verified",
)


def user_document(user: User, linked: Sequence[LinkedIdentity] | None = None) -> dict[str, Any]:
    """Return the complete profile; empty fields are left out, `blocked` until it was set once.

    `linked` are the linked identities in order of linking; without it they are read.
    """
    identities = list(user.linked_identities.select_related("connection").order_by("pk")) if linked is None else linked
    document: dict[str, Any] = {"user_id": user.user_id}
    if user.email:
        document.update(email=user.email, email_verified=user.email_verified)
    if user.phone_number:
        document.update(phone_number=user.phone_number, phone_verified=user.phone_verified)
    for field in _PROFILE:
        value = getattr(user, field)
        if value not in (None, "", [], {}):
            document[field] = value
    if user.blocked is not None:
        document["blocked"] = user.blocked
    document["identities"] = _identities(user, identities)
    document.update(_logins(user))
    document["created_at"] = wire_time(user.created_at)
    document["updated_at"] = wire_time(user.updated_at)
    return document


def profile_data(user: User) -> dict[str, Any]:
    """Return what an identity keeps of the user it was, in `profileData`."""
    document = {field: getattr(user, field) for field in _PROFILE_DATA}
    if not user.email:
        del document["email_verified"]
    if not user.phone_number:
        del document["phone_verified"]
    return {field: value for field, value in document.items() if value not in (None, "")}


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


def _logins(user: User) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if user.last_login:
        found["last_login"] = wire_time(user.last_login)
    if user.last_ip:
        found["last_ip"] = user.last_ip
    if user.logins_count:
        found["logins_count"] = user.logins_count
    return found
