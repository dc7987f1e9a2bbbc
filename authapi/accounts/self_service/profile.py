"""What people change of their own profile: names, picture, language. What a provider elsewhere says of them stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from authapi.accounts.self_service.own_act import OwnAct, own_act
from identity.languages import LANGUAGE_NAMES
from identity.models import User
from identity.services.failures import Invalid
from identity.services.users import update_user

FIELDS = ("name", "given_name", "family_name", "nickname", "picture")
LANGUAGE = LANGUAGE_NAMES[0]
# Users of these connections prove an address to this service. No provider elsewhere keeps their profile.
_OWN_STRATEGIES = frozenset({"email", "sms"})
_ONCE = frozenset({"on_first_login", "never_on_login"})


def is_kept_elsewhere(user: User) -> bool:
    """Tell whether a provider elsewhere writes the profile at each login, so that a change here would last until the next one."""
    connection = user.connection
    if connection.is_database or connection.strategy in _OWN_STRATEGIES:
        return False
    return connection.options.get("set_user_root_attributes") not in _ONCE


def editable_fields(user: User) -> tuple[str, ...]:
    """Return the fields of the profile that the user may change."""
    return () if is_kept_elsewhere(user) else FIELDS


@own_act("Changed the own profile")
def change_profile(own: OwnAct, user: User, fields: Mapping[str, str], *, language: str) -> bool:
    """Write the fields that the user may change, and the language; return whether anything differs. Raises `Invalid`.

    An empty text removes a value. `language` is the code of one that the tenant has enabled, or empty to follow the browser.
    """
    changes: dict[str, Any] = {
        name: fields[name] or None for name in editable_fields(user) if name in fields and fields[name] != (getattr(user, name) or "")
    }
    if changes.get("picture") and not str(changes["picture"]).startswith("https://"):
        raise Invalid({"picture": ["An address that starts with https:// is expected."]})
    if language != (user.user_metadata.get(LANGUAGE) or ""):
        # A null removes the name from the map, and an empty map would clear all.
        changes["user_metadata"] = {LANGUAGE: language or None}
    if changes:
        update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes=changes)
    return bool(changes)
