"""Mail to people, made of templates: the first line of `mail/<name>.txt` is the subject, the rest the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from identity.services.failures import ServiceError


class MailNotConfigured(ServiceError):
    """No mail can be sent: EMAIL_URL is not set."""


def send_mail(name: str, *, to: Sequence[str], context: Mapping[str, Any]) -> None:
    """Send the mail `name` to each address in one message per address; raise `MailNotConfigured`, or what the server refused.

    Never call this inside a transaction: a mail cannot be rolled back.
    """
    if not settings.MAIL_IS_CONFIGURED:
        raise MailNotConfigured
    subject, _, text = render_to_string(f"mail/{name}.txt", dict(context)).partition("\n")
    for address in to:
        # Auto-generated mail is not answered by holiday notices (RFC 3834, 5).
        headers = {"Auto-Submitted": "auto-generated"}
        EmailMessage(" ".join(subject.split()), text.lstrip("\n"), to=[address], headers=headers).send()
