"""Mails that tell users of changes to their second factors and passkeys: with a stolen password, an own factor is how attackers stay."""

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
    """Hear that factors of a user have changed, inside the transaction."""
    tell(user, REMOVED if removed else ADDED)


def tell(user: User, change: str) -> None:
    """Mail a user what has changed, by a job of the surrounding transaction. A user without an address, and a tenant without a mail
    server or with the mail switched off, gets none: the change itself must not fail for that.
    """
    if not user.email or not is_switched_on(user.tenant_id, KINDS[KIND]) or not can_send(user.tenant_id, EMAIL):
        return
    try:
        validate_email(user.email)
    except ValidationError:
        # Written before addresses were judged.
        return
    queue_message(
        tenant_id=user.tenant_id,
        kind=KIND,
        channel=EMAIL,
        recipient=user.email,
        context={"change": change, "user": user_facts(user)},
        language=language_for(user, user.tenant_id, asked=asked_language()),
    )
