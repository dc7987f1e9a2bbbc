"""Rebuilds an old event with the current profile of its user, for redeliveries that should not send the recorded profile."""

from __future__ import annotations

import json

from django.conf import settings

from events.log.envelope import escape_terminator, message_size
from identity.documents.user import user_document
from identity.models import User
from identity.services.failures import Conflict, NotFound

USER_DELETED = "user.deleted"
_PREFIX = "user:"
_TYPES = frozenset({"user.created", "user.updated"})


class UserExistsAgain(Conflict):
    """The user of this deletion exists again, so the event would delete an active account. To send the event, redeliver it by force."""


def user_of(tenant_id: str, key: str) -> User | None:
    """Return the current user for this order key, or None."""
    if not key.startswith(_PREFIX):
        return None
    return User.objects.of(tenant_id).select_related("connection").filter(user_id=key.removeprefix(_PREFIX)).first()


def deletes_living_user(tenant_id: str, event_type: str, key: str) -> bool:
    """Tell whether the event deletes a user that exists again."""
    return event_type == USER_DELETED and user_of(tenant_id, key) is not None


def can_be_rebuilt(event_type: str) -> bool:
    """Tell whether an event of this type contains a profile that can be rebuilt."""
    return event_type in _TYPES


def with_current_profile(*, tenant_id: str, key: str, event_type: str, body: bytes | None) -> bytes:
    """Return the envelope with the current user instead of the recorded user; all other members, including the id, are unchanged.

    To redeliver the result, the caller must have the lock of the lane. Later events are then delivered after this profile, so an older
    profile never overwrites a newer one. Raises `Conflict` if the event has no profile, or if the profile is too large. Raises `NotFound`
    if the user does not exist.
    """
    if not can_be_rebuilt(event_type) or body is None:
        raise Conflict("Only a creation or an update of a user can be sent with the current profile.")
    user = user_of(tenant_id, key)
    if user is None:
        raise NotFound("The user no longer exists, so there is no current profile.")
    envelope = json.loads(body)
    envelope["data"]["object"] = user_document(user)
    rebuilt = escape_terminator(json.dumps(envelope, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode())
    if message_size(event_type, rebuilt) > settings.EVENT_MAX_BYTES:
        raise Conflict("The current profile is larger than the maximum size of an event.")
    return rebuilt
