"""Lets users change their own profile: names, picture, language. Users cannot change fields that an external provider supplies."""

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
# Users of these connections log in with a code that this service sends, so no external provider supplies their profile.
_OWN_STRATEGIES = frozenset({"email", "sms"})
_ONCE = frozenset({"on_first_login", "never_on_login"})


def is_kept_elsewhere(user: User) -> bool:
    """Tell whether an external provider overwrites the profile at each login, so that a change by the user would be lost."""
    connection = user.connection
    if connection.is_database or connection.strategy in _OWN_STRATEGIES:
        return False
    return connection.options.get("set_user_root_attributes") not in _ONCE


def editable_fields(user: User) -> tuple[str, ...]:
    """Return the fields of the profile that the user may change."""
    return () if is_kept_elsewhere(user) else FIELDS


@own_act("Changed own profile")
def change_profile(own: OwnAct, user: User, fields: Mapping[str, str], *, language: str) -> bool:
    """Store the editable fields and the language; return whether anything changed. Raises `Invalid`.

    An empty text removes a value. `language` is a code that the tenant has enabled; an empty text means the language of the browser.
    """
    changes: dict[str, Any] = {
        name: fields[name] or None for name in editable_fields(user) if name in fields and fields[name] != (getattr(user, name) or "")
    }
    if changes.get("picture") and not str(changes["picture"]).startswith("https://"):
        raise Invalid({"picture": ["Expected an address that starts with https://."]})
    if language != (user.user_metadata.get(LANGUAGE) or ""):
        # A null value removes one key of the metadata. An empty object would remove all keys.
        changes["user_metadata"] = {LANGUAGE: language or None}
    if changes:
        update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes=changes)
    return bool(changes)
