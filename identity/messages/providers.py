"""Writes the message providers of a tenant. Secrets cannot be read back, and are sent only to the host for which they were entered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from foundation.database.transactions import unit_of_work
from identity.messages.mailing import checked_sender
from identity.messages.numbers import KNOWN_COUNTRIES
from identity.models import MessageProvider
from identity.models.messages import Channel
from identity.services.failures import AlreadyExists, Invalid, NotFound
from identity.services.saving import validated_save

_HOST = re.compile(r"(?=.{1,253}\Z)([A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?)(\.[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?)*")
_IPV6 = re.compile(r"[0-9A-Fa-f:.]{2,45}")
_SID = re.compile(r"[A-Za-z0-9]{2,64}")
_HEADER = re.compile(r"X-[A-Za-z0-9-]{1,60}")
_MOST_HEADERS = 10
_LONGEST = 512
NAMES = {
    Channel.EMAIL: (MessageProvider.Name.SMTP,),
    Channel.SMS: (MessageProvider.Name.TWILIO, MessageProvider.Name.WEBHOOK),
}
# The secrets of each provider, and the settings that determine where the secrets are sent.
SECRETS: Mapping[str, tuple[str, ...]] = {
    MessageProvider.Name.SMTP: ("smtp_pass",),
    MessageProvider.Name.TWILIO: ("twilio_token",),
    MessageProvider.Name.WEBHOOK: ("secret",),
}
_TARGETS: Mapping[str, tuple[str, ...]] = {
    MessageProvider.Name.SMTP: ("smtp_host", "smtp_port", "smtp_user"),
    MessageProvider.Name.TWILIO: ("twilio_sid",),
    MessageProvider.Name.WEBHOOK: ("url",),
}


def provider_of(tenant_id: str, channel: str) -> MessageProvider | None:
    """Return the provider of a channel, even if it is switched off."""
    return MessageProvider.objects.of(tenant_id).filter(channel=channel).first()


@unit_of_work
def create_provider(*, tenant_id: str, channel: str, name: str, **values: Any) -> MessageProvider:
    """Store the provider of a channel. Raises `AlreadyExists` or `Invalid`. For the values see `update_provider`."""
    if provider_of(tenant_id, channel) is not None:
        raise AlreadyExists("A provider exists already. Change or delete it.")
    return _stored(MessageProvider(tenant_id=tenant_id, channel=channel, name=name), **values)


@unit_of_work
def update_provider(*, tenant_id: str, channel: str, name: str | None = None, **values: Any) -> MessageProvider:
    """Change a provider. A change of `name` resets all settings and secrets.

    Values are `is_enabled`, `default_from`, `settings` and `secrets`. Values, settings and secrets that the caller does not pass are kept.
    Raises `NotFound`, or `Invalid`, also if a kept secret would be sent to another host or account.
    """
    row = MessageProvider.objects.of(tenant_id).select_for_update(no_key=True).filter(channel=channel).first()
    if row is None:
        raise NotFound("There is no provider.")
    if name is not None and name != row.name:
        row.name, row.settings, row.sealed_settings = name, {}, {}
    return _stored(row, **values)


@unit_of_work
def delete_provider(*, tenant_id: str, channel: str) -> bool:
    """Delete the provider of a channel, and return whether the channel had a provider.

    The platform then sends the messages of the channel.
    """
    row = provider_of(tenant_id, channel)
    if row is None:
        return False
    row.delete()
    return True


def _stored(
    row: MessageProvider,
    *,
    settings: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
    is_enabled: bool | None = None,
    default_from: str | None = None,
) -> MessageProvider:
    if row.name not in NAMES[Channel(row.channel)]:
        raise Invalid({"name": [f"Expected one of {', '.join(NAMES[Channel(row.channel)])}."]})
    given = {name: value for name, value in (secrets or {}).items() if name in SECRETS[row.name] and value}
    before = dict(row.settings)
    row.settings = {name: value for name, value in {**before, **(settings or {})}.items() if value not in (None, "")}
    row.is_enabled = row.is_enabled if is_enabled is None else is_enabled
    row.default_from = row.default_from if default_from is None else default_from
    problems = _problems(row) | _redirected(row, before, given)
    if problems:
        raise Invalid(problems)
    row.seal(given)
    if not row.settings.get("smtp_user") and row.name == MessageProvider.Name.SMTP:
        row.sealed_settings = {}
    missing = [name for name in SECRETS[row.name] if name not in row.sealed_settings]
    if missing and (row.name != MessageProvider.Name.SMTP or row.settings.get("smtp_user")):
        raise Invalid({name: ["This value is required."] for name in missing})
    validated_save(row)
    return row


def _redirected(row: MessageProvider, before: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, list[str]]:
    """Refuse to keep a secret whose target changes. Otherwise a caller who cannot read the secret could redirect it."""
    kept = [name for name in row.sealed_settings if name not in given]
    moved = [name for name in _TARGETS[row.name] if before.get(name) != row.settings.get(name)]
    if not (kept and moved and row.settings.get("smtp_user", "x")):
        return {}
    return {name: [f"{moved[0]} changes, so the secret would be sent elsewhere. Enter the secret again."] for name in kept}


def _problems(row: MessageProvider) -> dict[str, list[str]]:
    found = {
        MessageProvider.Name.SMTP: _smtp_problems,
        MessageProvider.Name.TWILIO: _twilio_problems,
        MessageProvider.Name.WEBHOOK: _webhook_problems,
    }[MessageProvider.Name(row.name)](row)
    countries = row.settings.get("allowed_countries", [])
    unknown = [code for code in countries if code not in KNOWN_COUNTRIES] if isinstance(countries, list) else ["?"]
    if unknown:
        found["allowed_countries"] = ["Enter country codes of two capital letters, such as DE."]
    return found


def _smtp_problems(row: MessageProvider) -> dict[str, list[str]]:
    own, problems = row.settings, {}
    host, port = own.get("smtp_host"), own.get("smtp_port")
    if not (isinstance(host, str) and (_HOST.fullmatch(host) or (":" in host and _IPV6.fullmatch(host)))):
        problems["smtp_host"] = ["Enter the host name of the mail server, such as smtp.example.com."]
    if type(port) is not int or not 1 <= port <= 65535:
        problems["smtp_port"] = ["Enter a port number, such as 587."]
    if not _is_line(own.get("smtp_user", "")):
        problems["smtp_user"] = ["A username must be one line."]
    if row.default_from and not (_is_line(row.default_from) and checked_sender(row.default_from)):
        problems["default_from"] = ["Enter an address, such as Example <mail@example.com>."]
    headers = own.get("headers", {})
    if not (isinstance(headers, dict) and len(headers) <= _MOST_HEADERS and all(map(_is_header, headers.items()))):
        problems["headers"] = [f"Enter at most {_MOST_HEADERS} headers whose names begin with X-, each with one line of text."]
    return problems


def _twilio_problems(row: MessageProvider) -> dict[str, list[str]]:
    own, problems = row.settings, {}
    for name in ("twilio_sid", "messaging_service_sid"):
        value = own.get(name, "" if name != "twilio_sid" else None)
        if not (value == "" or (isinstance(value, str) and _SID.fullmatch(value))):
            problems[name] = ["Enter the SID as Twilio shows it."]
    if not (row.default_from or own.get("messaging_service_sid")):
        problems["default_from"] = ["Enter a sender, or the SID of a messaging service."]
    if not _is_line(row.default_from):
        problems["default_from"] = ["A sender is a number such as +15005550006, or a name of up to eleven letters."]
    return problems


def _webhook_problems(row: MessageProvider) -> dict[str, list[str]]:
    url = row.settings.get("url")
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        is_secure = parts.scheme == "https" or (parts.scheme == "http" and settings.OUTBOUND_ALLOW_HTTP)
        is_address = is_secure and bool(parts.hostname) and "@" not in parts.netloc and _is_line(url)
    except ValueError:
        is_address = False
    problems = {} if is_address else {"url": ["Enter an https address without a user name."]}
    if not _is_line(row.default_from):
        problems["default_from"] = ["A sender must be one line."]
    return problems


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST and all(character.isprintable() for character in value)


def _is_header(header: tuple[Any, Any]) -> bool:
    name, value = header
    return isinstance(name, str) and bool(_HEADER.fullmatch(name)) and _is_line(value)
