"""OpenAPI schemas and parameters of organizations, their members and their connections."""

from __future__ import annotations

from foundation.api.list_schemas import LIST_FORMS, list_of, reference, sort_parameter, taken_list
from foundation.api.operations import SWITCH, TEXT, Parameter, Schema
from identity import shapes

ORGANIZATION = reference("Organization")
ORGANIZATIONS = list_of("organizations", ORGANIZATION)
ENABLED_CONNECTION = reference("EnabledConnection")
ENABLED_CONNECTIONS = list_of("enabled_connections", ENABLED_CONNECTION)
ORGANIZATION_CONNECTION = reference("OrganizationConnection")
ORGANIZATION_CONNECTIONS = list_of("connections", ORGANIZATION_CONNECTION)
MEMBER_FIELDS = ("user_id", "email", "name", "picture", "roles")
MEMBERS = list_of("members", reference("OrganizationMember"))
TAKEN_MEMBERS = taken_list("members", reference("ShortUser"))
_MEMBER_ROLE: Schema = {"type": "object", "required": ["id", "name"], "properties": {"id": TEXT, "name": TEXT}}
COMPONENTS: dict[str, Schema] = {
    # No member is required, because `fields` can leave out any of them.
    "Organization": {"type": "object", "properties": shapes.ORGANIZATION.properties},
    "EnabledConnection": {"type": "object", "properties": shapes.ENABLED_CONNECTION.properties},
    "OrganizationConnection": {"type": "object", "properties": shapes.ORGANIZATION_CONNECTION.properties},
    "OrganizationMember": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("user_id", "email", "name", "picture"), TEXT),
            "roles": {"type": "array", "items": _MEMBER_ROLE, "description": "Present only if `fields` names it."},
        },
    },
}
ORGANIZATION_FIELDS = shapes.ORGANIZATION.names
ENABLED_CONNECTION_FIELDS = shapes.ENABLED_CONNECTION.names
ORGANIZATION_CONNECTION_FIELDS = shapes.ORGANIZATION_CONNECTION.names
LIST_PARAMETERS = (*LIST_FORMS, sort_parameter("name", "display_name", "created_at"))
IS_ENABLED = Parameter("is_enabled", SWITCH, "True: only enabled connections. False: only disabled connections.")
