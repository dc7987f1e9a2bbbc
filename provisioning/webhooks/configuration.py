"""Validates the configuration of a webhook destination and splits it into visible and sealed members. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from provisioning.webhooks.signature import SecretRefused, key_of

STANDARD_WEBHOOKS = "standard-webhooks"
_METHODS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # For each method of authorization: its visible members and its sealed members.
    "basic": (("username",), ("password",)),
    "bearer": ((), ("token",)),
    "custom_header": (("header_key",), ("header_value",)),
}
_LONGEST_URL = 2048
_LONGEST_NAME = 128
_LONGEST_SECRET = 4096
# The name of a header field, and a value without characters that could end the line (RFC 9110, 5.1 and 5.5).
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_RESERVED_HEADERS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "webhook-id", "webhook-timestamp", "webhook-signature"}
)


class ConfigurationRefused(ValueError):
    """A member of the configuration is invalid; `name` is its path."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


@dataclass(frozen=True)
class WebhookConfiguration:
    """A valid configuration. `secrets` is excluded from `repr`."""

    shown: dict[str, Any]
    secrets: dict[str, str] = field(repr=False)


def parse_configuration(configuration: Mapping[str, Any], *, allow_http: bool) -> WebhookConfiguration:
    """Split a configuration into visible and sealed members; raise `ConfigurationRefused`."""
    for name in configuration:
        if name not in ("webhook_endpoint", "webhook_authorization", "webhook_signature"):
            raise ConfigurationRefused(name[:64], "Additional properties not allowed")
    shown: dict[str, Any] = {"webhook_endpoint": _endpoint(configuration.get("webhook_endpoint"), allow_http=allow_http)}
    shown["webhook_authorization"], secrets = _authorization(configuration.get("webhook_authorization"))
    if configuration.get("webhook_signature") is not None:
        secrets["signing_secret"] = _signing_secret(configuration["webhook_signature"])
        shown["webhook_signature"] = {"method": STANDARD_WEBHOOKS}
    return WebhookConfiguration(shown, secrets)


def authorization_header(shown: Mapping[str, Any], secrets: Mapping[str, str]) -> tuple[str, str]:
    """Return name and value of the header that a checked configuration sends."""
    match shown["method"]:
        case "basic":
            pair = f"{shown['username']}:{secrets['password']}"
            return "Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"
        case "bearer":
            return "Authorization", f"Bearer {secrets['token']}"
        case _:
            return shown["header_key"], secrets["header_value"]


def _endpoint(value: Any, *, allow_http: bool) -> str:
    name = "webhook_endpoint"
    text = _text(value, name, longest=_LONGEST_URL)
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise ConfigurationRefused(name, "Object didn't pass validation for format uri") from error
    schemes = ("https", "http") if allow_http else ("https",)
    if parts.scheme not in schemes or not has_host or not re.fullmatch(r"[!-~]+", text) or "\\" in text:
        raise ConfigurationRefused(name, "An address that begins with https:// is expected")
    if "@" in parts.netloc or "#" in text:
        raise ConfigurationRefused(name, "An address without user name and fragment is expected")
    return text


def _authorization(value: Any) -> tuple[dict[str, str], dict[str, str]]:
    place = "webhook_authorization"
    if not isinstance(value, Mapping):
        raise ConfigurationRefused(place, "Expected type object")
    method = value.get("method")
    if not isinstance(method, str) or method not in _METHODS:
        raise ConfigurationRefused(f"{place}.method", f"Expected one of {', '.join(_METHODS)}")
    shown_names, secret_names = _METHODS[method]
    for name in value:
        if name not in ("method", *shown_names, *secret_names):
            raise ConfigurationRefused(f"{place}.{name[:64]}", "Additional properties not allowed")
    shown = {name: _text(value.get(name), f"{place}.{name}", longest=_LONGEST_NAME) for name in shown_names}
    secrets = {name: _text(value.get(name), f"{place}.{name}", longest=_LONGEST_SECRET) for name in secret_names}
    if ":" in shown.get("username", ""):
        raise ConfigurationRefused(f"{place}.username", "A name without a colon is expected")
    key = shown.get("header_key")
    if key is not None and (not _HEADER_NAME.fullmatch(key) or key.lower() in _RESERVED_HEADERS):
        raise ConfigurationRefused(f"{place}.header_key", "The name of a header that the service does not set itself is expected")
    if method != "basic" and not all(_HEADER_VALUE.fullmatch(secret) for secret in secrets.values()):
        raise ConfigurationRefused(f"{place}.{secret_names[0]}", "Printable ASCII is expected")
    return {"method": method, **shown}, secrets


def _signing_secret(value: Any) -> str:
    place = "webhook_signature"
    if not isinstance(value, Mapping) or set(value) != {"method", "secret"} or value["method"] != STANDARD_WEBHOOKS:
        raise ConfigurationRefused(place, f"Exactly two members are expected: method, with the value {STANDARD_WEBHOOKS}, and secret")
    secret = _text(value["secret"], f"{place}.secret", longest=_LONGEST_SECRET)
    try:
        key_of(secret)
    except SecretRefused as error:
        raise ConfigurationRefused(f"{place}.secret", str(error)) from error
    return secret


def _text(value: Any, name: str, *, longest: int) -> str:
    if not isinstance(value, str):
        raise ConfigurationRefused(name, "Expected type string" if value is not None else "Missing required property")
    if not 0 < len(value) <= longest:
        raise ConfigurationRefused(name, f"Expected 1 to {longest} characters")
    return value
