"""How a tenant notifies users of requests that they approve elsewhere (CIBA): the configuration, and a check for missing values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from authapi.models import TenantSettings
from authapi.tenant_settings import sign_in_settings
from identity.messages.hooks import Target
from identity.messages.mailing import can_send_mail
from identity.services.failures import Invalid

SETTING = "backchannel_authentication"
EMAIL, WEBHOOK = "email", "webhook"
CHANNELS = (EMAIL, WEBHOOK)
SECRET = "webhook_secret"  # noqa: S105  (the name of a setting)
SHORTEST_SECRET = 24
_LONGEST = 512
_NO_MAIL = "The tenant notifies users by email, but no mail server is configured: configure a mail provider for the tenant."
_NO_WEBHOOK = "The tenant notifies users by a webhook, but its address or its secret is missing in the sign-in settings."


def missing(tenant_id: str) -> str:
    """Return a sentence about the missing settings for notifying users; empty if no setting is missing."""
    if sign_in_settings(tenant_id).notifier.channel == EMAIL:
        return "" if can_send_mail(tenant_id) else _NO_MAIL
    return _NO_WEBHOOK if target_of(tenant_id) is None else ""


def target_of(tenant_id: str) -> Target | None:
    """Return the webhook of a tenant; None if the tenant has no webhook. Raises `SecretUnreadable`."""
    notifier = sign_in_settings(tenant_id).notifier
    row = TenantSettings.objects.of(tenant_id).first() if notifier.channel == WEBHOOK and notifier.webhook_url else None
    secret = row.secret(SECRET) if row is not None else ""
    return Target(notifier.webhook_url, secret.encode()) if secret else None


def take_notifier(row: TenantSettings, change: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Apply a change of the notifier; return the settings to store, without the secret, which the row stores sealed.

    Members that the change omits stay. If the change is None, the notifier gets its default, and the secret is deleted. Raises `Invalid`,
    also for a new URL without the secret: a caller that cannot read the stored secret must not make the service use it at another URL.
    """
    if change is None:
        row.seal(SECRET, "")
        return None
    before = row.values.get(SETTING) or {}
    named = {name: value or "" for name, value in change.items() if name != SECRET}
    after = {"channel": EMAIL, "webhook_url": "", **before, **named}
    secret = change.get(SECRET) or ""
    problems = _problems(row, before, after, secret)
    if problems:
        raise Invalid({f"{SETTING}.{name}": [problem] for name, problem in problems.items()})
    if secret or not after["webhook_url"]:
        row.seal(SECRET, secret)
    return after


def _problems(row: TenantSettings, before: Mapping[str, str], after: Mapping[str, str], secret: str) -> dict[str, str]:
    url, problems = after["webhook_url"], {}
    if after["channel"] not in CHANNELS:
        problems["channel"] = f"One of {', '.join(CHANNELS)}."
    if url and not _is_address(url):
        problems["webhook_url"] = "An https address without a user name is expected."
    elif not url and after["channel"] == WEBHOOK:
        problems["webhook_url"] = "The webhook needs an address."
    if secret and not SHORTEST_SECRET <= len(secret) <= _LONGEST:
        problems[SECRET] = f"{SHORTEST_SECRET} to {_LONGEST} characters."
    elif url and not secret and SECRET not in row.sealed_values:
        problems[SECRET] = "The webhook needs a secret, with which each request is signed."
    elif url and not secret and url != before.get("webhook_url"):
        problems[SECRET] = "A new address needs the secret again."
    return problems


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_secure = parts.scheme == "https" or (parts.scheme == "http" and settings.OUTBOUND_ALLOW_HTTP)
        is_line = len(url) <= _LONGEST and url.isprintable() and " " not in url
        return is_secure and is_line and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False
