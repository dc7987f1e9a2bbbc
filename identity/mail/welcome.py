"""The mail that welcomes a user after sign-up. It is sent only if the tenant has switched it on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from identity.messages.catalogue import EMAIL, KINDS
from identity.messages.facts import user_facts
from identity.messages.queue import can_send, queue_message
from identity.messages.switches import is_switched_on
from identity.models import Job, User

_MAIL = "welcome_email"


def start_welcome(user: User, *, application: Mapping[str, Any] | None = None, language: str = "") -> Job | None:
    """Return the job of the welcome mail, or None if no mail is sent.

    No mail is sent if the tenant has not switched the mail on, if no mail server is configured, or if the user has no address. Call the
    function in the transaction that creates the user.
    """
    if not user.email or not is_switched_on(user.tenant_id, KINDS[_MAIL]) or not can_send(user.tenant_id, EMAIL):
        return None
    return queue_message(
        tenant_id=user.tenant_id,
        kind=_MAIL,
        channel=EMAIL,
        recipient=user.email,
        context={"user": user_facts(user)},
        language=language,
        connection=user.connection,
        application=application,
    )
