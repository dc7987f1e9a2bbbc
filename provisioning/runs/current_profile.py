"""An old event with the profile of now: what is sent where the exact payload would no longer help."""

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
    """The user of this deletion exists again: sending it would delete a living account. It needs force."""


def user_of(tenant_id: str, key: str) -> User | None:
    """Return the user whose events have this order key, as it is now."""
    if not key.startswith(_PREFIX):
        return None
    return User.objects.of(tenant_id).select_related("connection").filter(user_id=key.removeprefix(_PREFIX)).first()


def deletes_living_user(tenant_id: str, event_type: str, key: str) -> bool:
    """Tell whether the event deletes a user that is there (again)."""
    return event_type == USER_DELETED and user_of(tenant_id, key) is not None


def can_be_rebuilt(event_type: str) -> bool:
    """Tell whether an event of this type carries a profile that can be taken anew."""
    return event_type in _TYPES


def with_current_profile(*, tenant_id: str, key: str, event_type: str, body: bytes | None) -> bytes:
    """Return the envelope with the user as it is now in place of the recorded one; everything else stays, its id too.

    Whoever calls this holds the lane: what is recorded later is then delivered later, and this is never older than what
    was delivered. Raises `Conflict` for an event without a profile or too large, `NotFound` when the user is gone.
    """
    if not can_be_rebuilt(event_type) or body is None:
        raise Conflict("Only a creation or an update of a user can be sent with the current profile.")
    user = user_of(tenant_id, key)
    if user is None:
        raise NotFound("The user does not exist any more; there is no current profile.")
    envelope = json.loads(body)
    envelope["data"]["object"] = user_document(user)
    rebuilt = escape_terminator(json.dumps(envelope, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode())
    if message_size(event_type, rebuilt) > settings.EVENT_MAX_BYTES:
        raise Conflict("The current profile is larger than an event may be.")
    return rebuilt
