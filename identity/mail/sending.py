"""Mail to people, made of templates: the first line of `mail/<name>.txt` is the subject, the rest the text."""

from __future__ import annotations

import smtplib
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from identity.languages import DEFAULT, speaking
from identity.services.failures import ServiceError

_NEVER = 500


class MailServerAway(Exception):
    """The mail server could not be reached, or refused for now: it may take the mail later."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class MailNotConfigured(ServiceError):
    """No mail can be sent: EMAIL_URL is not set."""


def send_mail(name: str, *, to: Sequence[str], context: Mapping[str, Any], language: str = DEFAULT) -> None:
    """Send the mail `name` to each address in one message per address, in a language that has a catalogue.

    Raises `MailNotConfigured`, `MailServerAway`, or what the server refused for good.

    Never call this inside a transaction: a mail cannot be rolled back.
    """
    if not settings.MAIL_IS_CONFIGURED:
        raise MailNotConfigured
    with speaking(language):
        subject, _, text = render_to_string(f"mail/{name}.txt", dict(context)).partition("\n")
    for address in to:
        # Auto-generated mail is not answered by holiday notices (RFC 3834, 5).
        headers = {"Auto-Submitted": "auto-generated", "Content-Language": language}
        message = EmailMessage(" ".join(subject.split()), text.lstrip("\n"), to=[address], headers=headers)
        try:
            message.send()
        except OSError as error:
            if _is_final(error):
                raise
            raise MailServerAway from error


def _is_final(error: OSError) -> bool:
    """Tell whether the server said never (RFC 5321, 4.2.1: 5yz); everything else may work later."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= _NEVER for code, _ in error.recipients.values())
    return isinstance(error, smtplib.SMTPResponseException) and error.smtp_code >= _NEVER
