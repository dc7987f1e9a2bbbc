"""Turn `SMS_URL` into the platform's sender of text messages."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from django.core.exceptions import ImproperlyConfigured

_PROBLEM = (
    "SMS_URL must be console:, file:/directory, twilio://sid:token@api.twilio.com?from=+15005550006 (or ?messaging_service_sid=MG...), "
    "or webhook+https://secret@host/path."
)


def sms_settings(url: str) -> dict[str, Any]:
    """Return the kind of the sender and its parameters, or an empty object if the URL is empty.

    Raises `ImproperlyConfigured` for another scheme or a missing part, without repeating the URL.
    """
    parts = urlsplit(url)
    secret = unquote(parts.password or "")
    match parts.scheme:
        case "":
            return {}
        case "console":
            return {"kind": "console"}
        case "file" if parts.path:
            return {"kind": "file", "directory": unquote(parts.path)}
        case "twilio" if parts.hostname and parts.username and secret:
            query = parse_qs(parts.query)
            # A plus sign in a query string means a space, so the plus sign of the phone number is lost. It is added again below.
            sender = query.get("from", [""])[0].strip()
            named = {"sender": f"+{sender}" if sender.isdigit() else sender, "service": query.get("messaging_service_sid", [""])[0]}
            if not any(named.values()):
                raise ImproperlyConfigured(_PROBLEM)
            place = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
            return {"kind": "twilio", "account_sid": unquote(parts.username), "token": secret, "base_url": f"https://{place}", **named}
        case "webhook+https" | "webhook+http" if parts.hostname and parts.username:
            place = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
            address = urlunsplit((parts.scheme.removeprefix("webhook+"), place, parts.path or "/", parts.query, ""))
            return {"kind": "webhook", "url": address, "key": unquote(parts.username)}
        case _:
            raise ImproperlyConfigured(_PROBLEM)
