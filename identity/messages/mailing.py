"""Hand one mail to the server of the tenant, or to that of the platform."""

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
    """A backend of Django, and who mails of it are from. A tenant's own server may send from any address the tenant names."""

    backend: Any
    default_from: str
    is_own: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


def mail_provider(tenant_id: str) -> MessageProvider | None:
    """Return the mail provider of a tenant, None without one and for one that is switched off."""
    return MessageProvider.objects.of(tenant_id).filter(channel=Channel.EMAIL, is_enabled=True).first()


def can_send_mail(tenant_id: str) -> bool:
    """Tell whether any server takes the mails of a tenant."""
    return bool(settings.MAIL_IS_CONFIGURED) or mail_provider(tenant_id) is not None


def mail_server(tenant_id: str) -> MailServer:
    """Return what the mails of a tenant go to. Raises `MailNotConfigured`, or `MessageRefused` where its password cannot be read."""
    provider = mail_provider(tenant_id)
    if provider is None:
        if not settings.MAIL_IS_CONFIGURED:
            raise MailNotConfigured
        return MailServer(get_connection(), settings.DEFAULT_FROM_EMAIL)
    own = provider.settings
    try:
        password = provider.secret("smtp_pass")
    except SecretUnreadable as error:
        raise MessageRefused("The password of the mail server cannot be opened: save it again.") from error
    backend = ProviderBackend(host=own["smtp_host"], port=own["smtp_port"], username=own.get("smtp_user", ""), password=password)
    default_from = provider.default_from or settings.DEFAULT_FROM_EMAIL
    return MailServer(backend, default_from, is_own=True, headers=own.get("headers", {}))


def send_composed(server: MailServer, composed: Composed, *, to: str) -> None:
    """Send one mail to one address.

    Raises `ProviderAway` where it may be sent again, `InDoubt` where it must not, `MessageRefused` for good. Never call this
    inside a transaction: a mail cannot be rolled back.
    """
    # Auto-generated mail is not answered by holiday notices (RFC 3834, 5).
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
        # A deadline that passed, or a connection that was lost: the server may have the whole mail.
        raise InDoubt from error
    finally:
        # The mail is taken already: what goes wrong with the farewell changes nothing.
        with suppress(OSError):
            server.backend.close()


def _opened(backend: Any) -> None:
    """Open the connection apart from sending: what fails here has handed nothing over."""
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
    """Return what an answer of the server means: 5yz is for good (RFC 5321, 4.2.1), everything else may work later."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        is_final = all(code >= _NEVER for code, _ in error.recipients.values())
        return MessageRefused("The mail server refuses the recipient.") if is_final else ProviderAway()
    if error.smtp_code < _NEVER:
        return ProviderAway(f"The mail server answers {error.smtp_code}.")
    what = "the user name or the password" if isinstance(error, smtplib.SMTPAuthenticationError) else "the mail"
    return MessageRefused(f"The mail server refuses {what} (code {error.smtp_code}).")


def _sender(server: MailServer, composed: Composed) -> str:
    """Return who the mail is from: on the platform's server always the platform's address, under the name of the tenant."""
    if server.is_own:
        return checked_sender(composed.from_address) or checked_sender(server.default_from) or settings.DEFAULT_FROM_EMAIL
    name, address = parseaddr(server.default_from)
    return server.default_from if name or not composed.sender_name else formataddr((composed.sender_name, address))


def checked_sender(text: str) -> str:
    """Return a sender such as `Example <help@example.com>` in one line; empty where it is none."""
    name, address = parseaddr(" ".join(text.split()))
    try:
        validate_email(address)
    except ValidationError:
        return ""
    return formataddr((name, address)) if name else address
