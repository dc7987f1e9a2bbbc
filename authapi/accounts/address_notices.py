"""The mail that warns a user at the former email address of an account: an attacker may have changed the email address."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from authapi.accounts.account_changes import keeps_address
from identity.languages import asked_language, language_for
from identity.messages.catalogue import EMAIL, KINDS
from identity.messages.facts import user_facts
from identity.messages.queue import can_send, queue_message
from identity.messages.switches import is_switched_on
from identity.models import User

KIND = "address_notice"


def tell_former_address(user: User, *, former_email: str, **_: object) -> None:
    """Queue a mail to the former email address of a changed account, in the transaction of the change.

    Sends nothing if the tenant has no mail server or has disabled this mail: a missing mail must not make the change fail. Users of
    external providers get no mail: the provider verifies their email address and notifies them.
    """
    if not former_email or not keeps_address(user):
        return
    if not is_switched_on(user.tenant_id, KINDS[KIND]) or not can_send(user.tenant_id, EMAIL):
        return
    try:
        validate_email(former_email)
    except ValidationError:
        # An older version may have stored an invalid email address, because it did not validate email addresses.
        return
    queue_message(
        tenant_id=user.tenant_id,
        kind=KIND,
        channel=EMAIL,
        recipient=former_email,
        # The mail is sent to the former mailbox, which an attacker may read. So the template of the mail gets only the former email
        # address, not the new one.
        context={"user": {**user_facts(user), "email": former_email}},
        language=language_for(user, user.tenant_id, asked=asked_language()),
    )
