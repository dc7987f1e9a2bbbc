"""OpenAPI schemas and parameters of roles and their assignments."""

from __future__ import annotations

from foundation.api.list_schemas import LIST_FORMS, TAKE_FORM, fields_of, list_of, reference, taken_list
from foundation.api.operations import TEXT, Parameter, Schema
from identity import shapes

ROLE = reference("Role")
ROLES = list_of("roles", ROLE)
TAKEN_ROLES = taken_list("roles", ROLE)
EFFECTIVE_ROLES = taken_list("roles", reference("EffectiveRole"))
SHORT_USER = reference("ShortUser")
USERS = list_of("users", SHORT_USER)
NOTHING: Schema = {"type": "object", "description": "Empty.", "maxProperties": 0}
# No member is required, because `fields` can leave out any of them.
COMPONENTS: dict[str, Schema] = {
    "Role": {"type": "object", "properties": shapes.ROLE.properties},
    "EffectiveRole": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("id", "name", "description"), TEXT),
            "sources": {"type": "array", "items": {**TEXT, "enum": ["direct", "groups"]}},
        },
    },
    "ShortUser": {
        "type": "object",
        "properties": dict.fromkeys(("user_id", "email", "name", "picture"), TEXT),
    },
}
ROLE_FIELDS = shapes.ROLE.names
EFFECTIVE_ROLE_FIELDS = fields_of(COMPONENTS["EffectiveRole"])
SHORT_USER_FIELDS = fields_of(COMPONENTS["ShortUser"])

LIST_PARAMETERS = (
    *LIST_FORMS,
    Parameter("name_filter", TEXT, "A part of the name. Letter case is ignored."),
    Parameter("type", {**TEXT, "enum": ["tenant", "organization"]}, "Only roles of the tenant, or only roles of organizations."),
    Parameter("owner_id", TEXT, "The id of an organization: only its roles."),
)
ROLE_ID = (Parameter("role_id", TEXT, "The role.", is_required=True), *TAKE_FORM)
