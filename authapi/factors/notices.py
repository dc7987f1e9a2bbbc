"""Mails about changes to second factors and passkeys. So users notice an attacker who adds a factor to keep access to an account."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from identity.languages import asked_language, language_for
from identity.messages.catalogue import EMAIL, KINDS
from identity.messages.facts import user_facts
from identity.messages.queue import can_send, queue_message
from identity.messages.switches import is_switched_on
from identity.models import User

KIND = "factor_notice"
ADDED, REMOVED, RECOVERED = "added", "removed", "recovered"


def tell_of_change(user: User, *, removed: frozenset[str], **_: object) -> None:
    """Mail the user about changed factors. This signal receiver runs in the transaction of the change."""
    tell(user, REMOVED if removed else ADDED)


def tell(user: User, change: str) -> None:
    """Queue a mail about a change, in the surrounding transaction.

    Do nothing if the user has no email address, if the tenant has no mail server, or if the tenant has switched the mail off. A mail that
    cannot be sent must not make the change itself fail.
    """
    if not user.email or not is_switched_on(user.tenant_id, KINDS[KIND]) or not can_send(user.tenant_id, EMAIL):
        return
    try:
        validate_email(user.email)
    except ValidationError:
        # An older version may have stored an invalid email address, because it did not validate email addresses.
        return
    queue_message(
        tenant_id=user.tenant_id,
        kind=KIND,
        channel=EMAIL,
        recipient=user.email,
        context={"change": change, "user": user_facts(user)},
        language=language_for(user, user.tenant_id, asked=asked_language()),
    )
