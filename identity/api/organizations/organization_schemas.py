"""What the OpenAPI document says about organizations, their members and their connections."""

from __future__ import annotations

from foundation.api.list_schemas import LIST_FORMS, fields_of, list_of, reference, sort_parameter, taken_list
from foundation.api.operations import Parameter, Schema

_TEXT: Schema = {"type": "string"}
_SWITCH: Schema = {"type": "boolean"}
_LEVEL: Schema = {**_TEXT, "enum": ["none", "readonly", "limited", "full"]}
_FLAGS = dict.fromkeys(("assign_membership_on_login", "show_as_button", "is_signup_enabled"), _SWITCH)
_CONNECTION: Schema = {
    "connection_id": _TEXT,
    **_FLAGS,
    "connection": {"type": "object", "required": ["name", "strategy"], "properties": {"name": _TEXT, "strategy": _TEXT}},
}
_PROPERTIES: dict[str, Schema] = {
    "id": {**_TEXT, "pattern": "^org_[A-Za-z0-9]{16}$"},
    "name": _TEXT,
    "display_name": _TEXT,
    "branding": {"type": "object", "additionalProperties": True},
    "metadata": {"type": "object", "additionalProperties": _TEXT},
    "token_quota": {"type": "object", "additionalProperties": True},
    "third_party_client_access": _TEXT,
    "is_app_entitlement_active": _SWITCH,
    "enabled_connections": {
        "type": "array",
        "items": reference("EnabledConnection"),
        "description": "In the answer of the call that created it, never later.",
    },
}

ORGANIZATION = reference("Organization")
ORGANIZATIONS = list_of("organizations", ORGANIZATION)
ENABLED_CONNECTION = reference("EnabledConnection")
ENABLED_CONNECTIONS = list_of("enabled_connections", ENABLED_CONNECTION)
ORGANIZATION_CONNECTION = reference("OrganizationConnection")
ORGANIZATION_CONNECTIONS = list_of("connections", ORGANIZATION_CONNECTION)
MEMBER_FIELDS = ("user_id", "email", "name", "picture", "roles")
MEMBERS = list_of("members", reference("OrganizationMember"))
TAKEN_MEMBERS = taken_list("members", reference("ShortUser"))
_MEMBER_ROLE: Schema = {"type": "object", "required": ["id", "name"], "properties": {"id": _TEXT, "name": _TEXT}}
COMPONENTS: dict[str, Schema] = {
    # Nothing is required: `fields` leaves out what it does not name.
    "Organization": {"type": "object", "properties": _PROPERTIES},
    "EnabledConnection": {"type": "object", "properties": _CONNECTION},
    "OrganizationConnection": {
        "type": "object",
        "properties": {
            **_CONNECTION,
            "is_enabled": _SWITCH,
            "organization_connection_name": _TEXT,
            "organization_access_level": _LEVEL,
            "organization_member_access_level": _LEVEL,
        },
    },
    "OrganizationMember": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("user_id", "email", "name", "picture"), _TEXT),
            "roles": {"type": "array", "items": _MEMBER_ROLE, "description": "Only when named in `fields`."},
        },
    },
}
ORGANIZATION_FIELDS = tuple(_PROPERTIES)
ENABLED_CONNECTION_FIELDS = tuple(_CONNECTION)
ORGANIZATION_CONNECTION_FIELDS = fields_of(COMPONENTS["OrganizationConnection"])
LIST_PARAMETERS = (*LIST_FORMS, sort_parameter("name", "display_name", "created_at"))
IS_ENABLED = Parameter("is_enabled", _SWITCH, "Only enabled or only disabled connections.")
