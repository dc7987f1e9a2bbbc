"""Turn `EMAIL_URL` into Django's mail settings."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

_BACKENDS = "django.core.mail.backends"
_PORTS = {"smtp": 587, "smtp+plain": 25, "smtps": 465}
_TIMEOUT_SECONDS = 10


def email_settings(url: str, *, sender: str) -> dict[str, Any]:
    """Return Django's mail settings; without a URL no mail is sent.

    `smtp` upgrades to TLS after the greeting, `smtps` starts with TLS, `smtp+plain` uses no TLS. `console:` writes to standard output, and
    `file:/directory` writes into files. Raises `ImproperlyConfigured` for another scheme, without repeating the URL.
    """
    common = {"DEFAULT_FROM_EMAIL": sender, "SERVER_EMAIL": sender, "EMAIL_TIMEOUT": _TIMEOUT_SECONDS}
    parts = urlsplit(url)
    match parts.scheme:
        case "":
            chosen: dict[str, Any] = {"EMAIL_BACKEND": f"{_BACKENDS}.dummy.EmailBackend"}
        case "console":
            chosen = {"EMAIL_BACKEND": f"{_BACKENDS}.console.EmailBackend"}
        case "file":
            chosen = {"EMAIL_BACKEND": f"{_BACKENDS}.filebased.EmailBackend", "EMAIL_FILE_PATH": unquote(parts.path)}
        case "smtp" | "smtps" | "smtp+plain" if parts.hostname:
            chosen = {
                "EMAIL_BACKEND": f"{_BACKENDS}.smtp.EmailBackend",
                "EMAIL_HOST": parts.hostname,
                "EMAIL_PORT": parts.port or _PORTS[parts.scheme],
                "EMAIL_HOST_USER": unquote(parts.username or ""),
                "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
                "EMAIL_USE_TLS": parts.scheme == "smtp",
                "EMAIL_USE_SSL": parts.scheme == "smtps",
            }
        case _:
            raise ImproperlyConfigured("EMAIL_URL must be smtp://, smtps:// or smtp+plain:// with a host, console: or file:/directory.")
    return common | chosen
