"""What the OpenAPI document says about the provider of mails and their templates."""

from __future__ import annotations

from foundation.api.list_schemas import reference
from foundation.api.operations import SWITCH, TEXT, WHOLE, Parameter, Schema
from identity.messages.catalogue import PUBLIC_NAMES

_NULLABLE: Schema = {**TEXT, "nullable": True}
_CREDENTIALS: Schema = {
    "type": "object",
    "description": "The password is never shown.",
    "properties": {"smtp_host": TEXT, "smtp_port": WHOLE, "smtp_user": TEXT},
}
_PROVIDER: dict[str, Schema] = {
    "name": {**TEXT, "enum": ["smtp"]},
    "enabled": SWITCH,
    "default_from_address": TEXT,
    "credentials": _CREDENTIALS,
    "settings": {"type": "object", "properties": {"headers": {"type": "object", "additionalProperties": TEXT}}},
}
PROVIDER_FIELDS = tuple(_PROVIDER)
# What an answer holds where `fields` names nothing.
PROVIDER_DEFAULT = ("name", "enabled")
PROVIDER_PARAMETERS = (
    Parameter("fields", TEXT, f"Some of {', '.join(PROVIDER_FIELDS)}; {' and '.join(PROVIDER_DEFAULT)} without it."),
    Parameter("include_fields", SWITCH, "Whether these fields are answered, or all others."),
)
_TEMPLATE: dict[str, Schema] = {
    "template": {**TEXT, "enum": list(PUBLIC_NAMES)},
    "body": {**_NULLABLE, "description": "HTML with Liquid; null is the text of the service."},
    "from": {**_NULLABLE, "description": "Used where the tenant has a provider of its own."},
    "resultUrl": {**_NULLABLE, "description": "Where a user is led whose link has worked."},
    "subject": _NULLABLE,
    "syntax": {**TEXT, "enum": ["liquid"]},
    "urlLifetimeInSeconds": {**WHOLE, "nullable": True},
    "includeEmailInRedirect": SWITCH,
    "enabled": SWITCH,
}
EMAIL_PROVIDER = reference("EmailProvider")
EMAIL_TEMPLATE = reference("EmailTemplate")
COMPONENTS: dict[str, Schema] = {
    "EmailProvider": {"type": "object", "properties": _PROVIDER},
    "EmailTemplate": {"type": "object", "required": list(_TEMPLATE), "properties": _TEMPLATE},
}
