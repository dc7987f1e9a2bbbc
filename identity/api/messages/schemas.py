"""OpenAPI schemas and parameters of the mail provider and the mail templates."""

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
# Members of a response to a request without `fields`.
PROVIDER_DEFAULT = ("name", "enabled")
PROVIDER_PARAMETERS = (
    Parameter("fields", TEXT, f"Some of {', '.join(PROVIDER_FIELDS)}. Default: {' and '.join(PROVIDER_DEFAULT)}."),
    Parameter("include_fields", SWITCH, "True: the response has only these fields. False: all fields except these."),
)
_TEMPLATE: dict[str, Schema] = {
    "template": {**TEXT, "enum": list(PUBLIC_NAMES)},
    "body": {**_NULLABLE, "description": "HTML with Liquid; null restores the text of the service."},
    "from": {**_NULLABLE, "description": "Used only if the tenant has its own mail server."},
    "resultUrl": {**_NULLABLE, "description": "Target of the redirect after a link was used."},
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
