"""Sends mails immediately, inside a worker: mails of the service about its own work, and mails of a tenant to its users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.mail import get_connection
from django.template.loader import render_to_string

from identity.languages import DEFAULT, speaking
from identity.messages.catalogue import KINDS
from identity.messages.composing import Composed, compose, one_line
from identity.messages.mailing import MailServer, mail_server, send_composed
from identity.messages.outcomes import MailNotConfigured, ProviderAway

__all__ = ["MailNotConfigured", "MailServerAway", "send_mail"]

# Raised if the mail server is unavailable now: a later try may succeed.
MailServerAway = ProviderAway


def send_mail(name: str, *, to: Sequence[str], context: Mapping[str, Any], tenant_id: str | None = None, language: str = "") -> None:
    """Send the mail `name` to each address, in one message per address.

    With a tenant, `name` is a kind of message in `identity.messages.catalogue`. The text and the mail server are those of the tenant. The
    context must be plain data. Without a tenant, the text is `mail/<name>.txt`, whose first line is the subject, and the mail server is
    that of the platform.

    Raises `MailNotConfigured`, `ProviderAway` if a retry is safe, `InDoubt` if a retry could send twice, or `MessageRefused`.
    Never call this inside a transaction: a mail cannot be rolled back.
    """
    if tenant_id is None:
        server, composed = _of_the_platform(), _composed(name, context)
    else:
        server = mail_server(tenant_id)
        composed = compose(KINDS[name], tenant_id=tenant_id, context=context, language=language)
    for address in to:
        send_composed(server, composed, to=address)


def _of_the_platform() -> MailServer:
    if not settings.MAIL_IS_CONFIGURED:
        raise MailNotConfigured
    return MailServer(get_connection(), settings.DEFAULT_FROM_EMAIL)


def _composed(name: str, context: Mapping[str, Any]) -> Composed:
    with speaking(DEFAULT):
        subject, _, text = render_to_string(f"mail/{name}.txt", dict(context)).partition("\n")
    return Composed(subject=one_line(subject), text=text.lstrip("\n"))
