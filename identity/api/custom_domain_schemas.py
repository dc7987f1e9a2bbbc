"""OpenAPI schemas and parameters of custom domains."""

from __future__ import annotations

from foundation.api.list_schemas import TAKE_FORM, reference, taken_list
from foundation.api.operations import SWITCH, TEXT, Parameter, Schema
from identity.api.custom_domain_bodies import CERTIFICATE_TYPES

_METHOD: Schema = {
    "type": "object",
    "required": ["name", "record", "domain"],
    "properties": {
        "name": {**TEXT, "enum": ["txt"]},
        "record": {**TEXT, "description": "The content of the DNS record."},
        "domain": {**TEXT, "description": "The name of the DNS record."},
    },
}
_PROPERTIES: dict[str, Schema] = {
    "custom_domain_id": TEXT,
    "domain": TEXT,
    "primary": SWITCH,
    "is_default": {**SWITCH, "description": "Whether links in mails use this domain."},
    "status": {**TEXT, "enum": ["pending_verification", "ready"]},
    "type": {
        **TEXT,
        "enum": list(CERTIFICATE_TYPES),
        "description": "The value is stored but has no effect: for both types, the operator's TLS proxy manages the certificate.",
    },
    "origin_domain_name": {**TEXT, "description": "The canonical domain of the tenant: the target of an alias or a proxy."},
    "verification": {
        "type": "object",
        "required": ["methods", "status"],
        "properties": {
            "methods": {"type": "array", "items": _METHOD},
            "status": {**TEXT, "enum": ["verified", "pending", "failed"]},
            "error_msg": TEXT,
            "last_verified_at": {**TEXT, "format": "date-time"},
        },
    },
    "tls_policy": {**TEXT, "enum": ["recommended"]},
    "custom_client_ip_header": TEXT,
    "domain_metadata": {"type": "object", "additionalProperties": TEXT},
}
CUSTOM_DOMAIN_FIELDS = tuple(_PROPERTIES)
CUSTOM_DOMAIN = reference("CustomDomain")
CUSTOM_DOMAINS: Schema = {"oneOf": [{"type": "array", "items": CUSTOM_DOMAIN}, taken_list("custom_domains", CUSTOM_DOMAIN)]}
# The canonical domain is not a custom domain; its document has only a name.
DEFAULT_DOMAIN: Schema = {
    "anyOf": [
        CUSTOM_DOMAIN,
        {"type": "object", "required": ["domain"], "properties": {"domain": TEXT}, "additionalProperties": False},
    ]
}
DOMAIN_TEST: Schema = {"type": "object", "required": ["success"], "properties": {"success": SWITCH, "message": TEXT}}
# No member is required, because `fields` can leave out any of them.
COMPONENTS: dict[str, Schema] = {"CustomDomain": {"type": "object", "properties": _PROPERTIES}}
_SORT = Parameter("sort", {**TEXT, "enum": ["domain:1"]}, "Sorts by name. Not supported in the checkpoint form.")
LIST_PARAMETERS = (*TAKE_FORM, _SORT)
