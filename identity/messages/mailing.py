"""Sends one mail through the server of the tenant or of the platform."""

from __future__ import annotations

import smtplib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formataddr, parseaddr
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives, get_connection
from django.core.validators import validate_email

from foundation.outbound.outcomes import AddressRefused, OutboundError, TlsFailed
from foundation.secrets.vault import SecretUnreadable
from identity.messages.composing import Composed
from identity.messages.outcomes import InDoubt, MailNotConfigured, MessageRefused, ProviderAway
from identity.messages.smtp_backend import ProviderBackend, TlsMissing
from identity.models import MessageProvider
from identity.models.messages import Channel

_NEVER = 500


@dataclass(frozen=True)
class MailServer:
    """A mail backend of Django with its default sender. A tenant's own server may send from any address that the tenant names."""

    backend: Any
    default_from: str
    is_own: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


def mail_provider(tenant_id: str) -> MessageProvider | None:
    """Return the enabled mail provider of a tenant, or None."""
    return MessageProvider.objects.of(tenant_id).filter(channel=Channel.EMAIL, is_enabled=True).first()


def can_send_mail(tenant_id: str) -> bool:
    """Tell whether a mail server is configured for the tenant."""
    return bool(settings.MAIL_IS_CONFIGURED) or mail_provider(tenant_id) is not None


def mail_server(tenant_id: str) -> MailServer:
    """Return the mail server of a tenant. Raises `MailNotConfigured`, or `MessageRefused` if its password cannot be read."""
    provider = mail_provider(tenant_id)
    if provider is None:
        if not settings.MAIL_IS_CONFIGURED:
            raise MailNotConfigured
        return MailServer(get_connection(), settings.DEFAULT_FROM_EMAIL)
    own = provider.settings
    try:
        password = provider.secret("smtp_pass")
    except SecretUnreadable as error:
        raise MessageRefused("The password of the mail server cannot be decrypted: enter the password again.") from error
    backend = ProviderBackend(host=own["smtp_host"], port=own["smtp_port"], username=own.get("smtp_user", ""), password=password)
    default_from = provider.default_from or settings.DEFAULT_FROM_EMAIL
    return MailServer(backend, default_from, is_own=True, headers=own.get("headers", {}))


def send_composed(server: MailServer, composed: Composed, *, to: str) -> None:
    """Send one mail to one address.

    Raises `ProviderAway` if a retry is safe, `InDoubt` if a retry could send twice, and `MessageRefused` for a final refusal. Never call
    this inside a transaction: a mail cannot be rolled back.
    """
    # `Auto-Submitted` prevents automatic replies, such as vacation notices (RFC 3834, 5).
    headers = {**server.headers, "Auto-Submitted": "auto-generated"}
    if composed.language:
        headers["Content-Language"] = composed.language
    sender = _sender(server, composed)
    message = EmailMultiAlternatives(composed.subject, composed.text, sender, to=[to], headers=headers, connection=server.backend)
    if composed.html:
        message.attach_alternative(composed.html, "text/html")
    _opened(server.backend)
    try:
        server.backend.send_messages([message])
    except smtplib.SMTPServerDisconnected as error:
        raise InDoubt from error
    except (smtplib.SMTPRecipientsRefused, smtplib.SMTPResponseException) as error:
        raise _answered(error) from error
    except OSError as error:
        # After a timeout or a lost connection, the server may have the whole mail.
        raise InDoubt from error
    finally:
        # The result of the mail is known by now, so an error while closing changes nothing.
        with suppress(OSError):
            server.backend.close()


def _opened(backend: Any) -> None:
    """Open the connection as a separate step: if it fails, nothing was sent."""
    try:
        backend.open()
    except AddressRefused as error:
        raise MessageRefused("The mail server has an address that the service may not reach.") from error
    except (TlsMissing, TlsFailed) as error:
        raise MessageRefused(f"The connection to the mail server is not secure: {error}") from error
    except OutboundError as error:
        raise ProviderAway(str(error)) from error
    except smtplib.SMTPResponseException as error:
        raise _answered(error) from error
    except OSError as error:
        raise ProviderAway from error


def _answered(error: smtplib.SMTPRecipientsRefused | smtplib.SMTPResponseException) -> Exception:
    """Classify an SMTP error: 5yz is final (RFC 5321, 4.2.1); after any other code a retry may succeed."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        is_final = all(code >= _NEVER for code, _ in error.recipients.values())
        return MessageRefused("The mail server refuses the recipient.") if is_final else ProviderAway()
    if error.smtp_code < _NEVER:
        return ProviderAway(f"The mail server answers {error.smtp_code}.")
    what = "the username or the password" if isinstance(error, smtplib.SMTPAuthenticationError) else "the mail"
    return MessageRefused(f"The mail server refuses {what} (code {error.smtp_code}).")


def _sender(server: MailServer, composed: Composed) -> str:
    """Return the sender of a mail. The platform's server always uses the platform's address, with the name of the tenant."""
    if server.is_own:
        return checked_sender(composed.from_address) or checked_sender(server.default_from) or settings.DEFAULT_FROM_EMAIL
    name, address = parseaddr(server.default_from)
    return server.default_from if name or not composed.sender_name else formataddr((composed.sender_name, address))


def checked_sender(text: str) -> str:
    """Return a sender such as `Example <help@example.com>` in one line; empty for an invalid sender."""
    name, address = parseaddr(" ".join(text.split()))
    try:
        validate_email(address)
    except ValidationError:
        return ""
    return formataddr((name, address)) if name else address
