"""Request bodies for mails, with the names that clients use."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from foundation.api.fields import Closed, JsonObject, Switch, Text
from foundation.api.refusals import invalid_body, not_supported
from identity.api.job_bodies import WholeNumber
from identity.messages.catalogue import PUBLIC_NAMES
from identity.messages.sandbox import LONGEST_SOURCE
from identity.messages.templates import LONGEST_LIFE_SECONDS

_SMTP = "smtp"
_PROVIDERS = (_SMTP, "mailgun", "mandrill", "sendgrid", "resend", "ses", "sparkpost", "azure_cs", "ms365", "custom")
_CREDENTIALS = ("smtp_host", "smtp_port", "smtp_user", "smtp_pass")


class ProviderToChange(Closed):
    name = serializers.ChoiceField(choices=_PROVIDERS, required=False)
    enabled = Switch(required=False)
    default_from_address = Text(required=False, allow_null=True, allow_blank=True, max_length=320)
    credentials = JsonObject(required=False, most=10, help_text="smtp_host, smtp_port, smtp_user and smtp_pass.")
    settings = JsonObject(required=False, allow_null=True, most=5)


class ProviderToCreate(ProviderToChange):
    name = serializers.ChoiceField(choices=_PROVIDERS)
    credentials = JsonObject(most=10, help_text="smtp_host, smtp_port, smtp_user and smtp_pass.")


class TemplateToChange(Closed):
    """Null restores the text of the service."""

    template = serializers.ChoiceField(choices=PUBLIC_NAMES, required=False)
    body = Text(required=False, allow_null=True, allow_blank=True, max_length=LONGEST_SOURCE)
    subject = Text(required=False, allow_null=True, allow_blank=True, max_length=1000)
    syntax = serializers.ChoiceField(choices=["liquid"], required=False, allow_null=True)
    resultUrl = Text(required=False, allow_null=True, allow_blank=True, max_length=2048)  # noqa: N815  (the name of the wire)
    urlLifetimeInSeconds = WholeNumber(  # noqa: N815  (the name of the wire)
        required=False, allow_null=True, min_value=0, max_value=LONGEST_LIFE_SECONDS
    )
    includeEmailInRedirect = Switch(required=False, allow_null=True)  # noqa: N815  (the name of the wire)
    enabled = Switch(required=False, allow_null=True)

    def get_fields(self) -> Any:
        # `from` is a keyword of Python, so the field cannot be an attribute.
        return {**super().get_fields(), "from": Text(required=False, allow_null=True, allow_blank=True, max_length=1000)}


class TemplateToSet(TemplateToChange):
    template = serializers.ChoiceField(choices=PUBLIC_NAMES)


def provider_values(body: dict[str, Any]) -> dict[str, Any]:
    """Return the values to store for a checked body. Answers 400 for a provider that the service does not support."""
    name = body.get("name", _SMTP)
    if name != _SMTP:
        raise not_supported(f"Mails are sent by SMTP: use the name `smtp` with the SMTP host, port, user and password of {name}.")
    values: dict[str, Any] = {}
    if "enabled" in body:
        values["is_enabled"] = body["enabled"]
    if "default_from_address" in body:
        values["default_from"] = body["default_from_address"] or ""
    settings = _settings(body.get("settings") or {}) if "settings" in body else {}
    if "credentials" in body:
        own, values["secrets"] = _credentials(body["credentials"])
        settings |= own
    if settings:
        values["settings"] = settings
    return values


def _credentials(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    unknown = next((name for name in given if name not in _CREDENTIALS), None)
    if unknown is not None:
        raise invalid_body("Additional properties not allowed", "credentials")
    for name, value in given.items():
        kind = int if name == "smtp_port" else str
        if value is not None and type(value) is not kind:
            raise invalid_body(f"Expected type {'integer' if kind is int else 'string'}", f"credentials.{name}")
    password = given.get("smtp_pass")
    shown = {name: value for name, value in given.items() if name != "smtp_pass"}
    return shown, {"smtp_pass": password} if password else {}


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    if set(given) - {"headers"}:
        raise not_supported("The only supported setting of a provider is `headers`.")
    return {"headers": given.get("headers") or {}}


_COLUMNS = {
    "body": "body",
    "subject": "subject",
    "from": "from_address",
    "resultUrl": "result_url",
    "urlLifetimeInSeconds": "url_lifetime_seconds",
    "includeEmailInRedirect": "includes_email_in_redirect",
    "enabled": "is_enabled",
}
NAMES = {column: name for name, column in _COLUMNS.items()}
_WHEN_NULL: dict[str, Any] = {"url_lifetime_seconds": None, "includes_email_in_redirect": True, "is_enabled": True}


def template_values(body: dict[str, Any], *, is_whole: bool) -> dict[str, Any]:
    """Return the columns that a checked body sets, or all columns if `is_whole`. A lifetime of 0 and no lifetime both mean the
    default."""
    names = _COLUMNS if is_whole else [name for name in _COLUMNS if name in body]
    values = {_COLUMNS[name]: body.get(name) for name in names}
    values = {column: _WHEN_NULL.get(column, "") if value is None else value for column, value in values.items()}
    if values.get("url_lifetime_seconds") == 0:
        values["url_lifetime_seconds"] = None
    return values
