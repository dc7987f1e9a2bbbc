"""Finds the sender of text messages of a connection (its own provider, the tenant's or the platform's), and the allowed countries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from foundation.secrets.vault import SecretUnreadable
from identity.messages.outcomes import MessageRefused, TextsNotConfigured
from identity.messages.senders.local import ConsoleSender, FileSender
from identity.messages.senders.protocol import Sender
from identity.messages.senders.twilio import TwilioSender
from identity.messages.senders.webhook import Bearer, WebhookSender, key_bytes
from identity.models import Connection, MessageProvider
from identity.models.messages import Channel

TWILIO, GATEWAY = "twilio", "sms_gateway"


def text_sender(tenant_id: str, connection: Connection | None = None) -> Sender:
    """Return the first sender that is set up: the sender of the connection, of the tenant, or of the platform.

    Raises `TextsNotConfigured`, or `MessageRefused` if a secret cannot be decrypted.
    """
    try:
        found = _of_connection(connection) or _of_tenant(tenant_id) or _of_platform()
    except SecretUnreadable as error:
        raise MessageRefused("A secret for sending text messages cannot be decrypted: enter the secret again.") from error
    if found is None:
        raise TextsNotConfigured
    return found


def can_send_texts(tenant_id: str, connection: Connection | None = None) -> bool:
    """Tell whether the connection, the tenant or the platform has a sender."""
    try:
        text_sender(tenant_id, connection)
    except (TextsNotConfigured, MessageRefused):
        return False
    return True


def text_provider(tenant_id: str) -> MessageProvider | None:
    """Return the enabled provider of text messages of a tenant, or None."""
    return MessageProvider.objects.of(tenant_id).filter(channel=Channel.SMS, is_enabled=True).first()


def countries_for(tenant_id: str, connection: Connection | None = None) -> tuple[str, ...]:
    """Return the countries to which text messages may be sent; empty allows every country.

    The lists of the platform, the tenant and the connection are intersected. If the intersection is empty, a country that does not exist is
    returned, because an empty list would allow every country.
    """
    row = MessageProvider.objects.of(tenant_id).filter(channel=Channel.SMS).first()
    lists = [settings.SMS_COUNTRIES, row.settings.get("allowed_countries") if row else None]
    lists.append(connection.options.get("allowed_countries") if connection is not None else None)
    given = [frozenset(str(code).upper() for code in codes) for codes in lists if isinstance(codes, list | tuple) and codes]
    if not given:
        return ()
    return tuple(sorted(frozenset.intersection(*given))) or ("ZZ",)


def _of_connection(connection: Connection | None) -> Sender | None:
    if connection is None or connection.strategy != "sms":
        return None
    options = connection.options
    provider = options.get("provider") or (TWILIO if options.get("twilio_sid") else "")
    if provider == GATEWAY and connection_text(options, "gateway_url"):
        return _gateway(connection)
    token = connection.secret_option("twilio_token") if provider == TWILIO else None
    if not token or not connection_text(options, "twilio_sid"):
        return None
    return TwilioSender(
        account_sid=connection_text(options, "twilio_sid"),
        token=token,
        sender=connection_text(options, "from"),
        messaging_service_sid=connection_text(options, "messaging_service_sid"),
        base_url=settings.TWILIO_BASE_URL,
    )


def _gateway(connection: Connection) -> Sender:
    known = connection.options.get("gateway_authentication")
    how: Mapping[str, Any] = known if isinstance(known, dict) else {}
    secret = connection.secret_option("gateway_authentication/secret") or ""
    key = key_bytes(secret, is_base64=bool(how.get("secret_base64_encoded")))
    bearer = (
        Bearer(key, connection_text(how, "subject"), connection_text(how, "audience")) if secret and how.get("method") == "bearer" else None
    )
    return WebhookSender(connection_text(connection.options, "gateway_url"), key, bearer, connection_text(connection.options, "from"))


def connection_text(options: Mapping[str, Any], name: str) -> str:
    """Return an option if it is text, otherwise an empty text."""
    value = options.get(name)
    return value if isinstance(value, str) else ""


def _of_tenant(tenant_id: str) -> Sender | None:
    provider = text_provider(tenant_id)
    if provider is None:
        return None
    own = provider.settings
    if provider.name == MessageProvider.Name.WEBHOOK:
        return WebhookSender(own["url"], provider.secret("secret").encode(), None, provider.default_from)
    return TwilioSender(
        account_sid=own["twilio_sid"],
        token=provider.secret("twilio_token"),
        sender=provider.default_from,
        messaging_service_sid=own.get("messaging_service_sid", ""),
        base_url=settings.TWILIO_BASE_URL,
    )


def _of_platform() -> Sender | None:
    chosen = settings.SMS_SENDER
    match chosen.get("kind"):
        case "console":
            return ConsoleSender()
        case "file":
            return FileSender(chosen["directory"])
        case "twilio":
            return TwilioSender(chosen["account_sid"], chosen["token"], chosen["sender"], chosen["service"], chosen["base_url"])
        case "webhook":
            return WebhookSender(chosen["url"], chosen["key"].encode())
    return None
