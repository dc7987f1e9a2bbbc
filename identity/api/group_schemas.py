"""What the OpenAPI document says about groups and their members."""

from __future__ import annotations

from foundation.api.list_schemas import TAKE_FORM, fields_of, reference, taken_list
from foundation.api.operations import Parameter, Schema

_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_TYPE: Schema = {**_TEXT, "enum": ["connection", "organization", "tenant"]}
_PROPERTIES: dict[str, Schema] = {
    "id": {**_TEXT, "pattern": "^grp_[1-9A-HJ-NP-Za-km-z]{14,22}$"},
    "name": _TEXT,
    "type": _TYPE,
    "tenant_name": _TEXT,
    "external_id": _TEXT,
    "connection_id": _TEXT,
    "organization_id": _TEXT,
    "description": _TEXT,
    "created_at": _TIME,
    "updated_at": _TIME,
}
GROUP_FIELDS = tuple(_PROPERTIES)
GROUP = reference("Group")
TAKEN_GROUPS = taken_list("groups", GROUP)
MEMBERS = taken_list("members", reference("GroupMember"))
COMPONENTS: dict[str, Schema] = {
    # Nothing is required: `fields` leaves out what it does not name.
    "Group": {"type": "object", "properties": _PROPERTIES},
    "GroupMember": {
        "type": "object",
        "properties": {
            "id": _TEXT,
            "member_type": {**_TEXT, "enum": ["user", "group"]},
            "type": {**_TYPE, "description": "Of a nested group."},
            "connection_id": _TEXT,
            "created_at": _TIME,
        },
    },
}
MEMBER_FIELDS = fields_of(COMPONENTS["GroupMember"])

LIST_PARAMETERS = (
    *TAKE_FORM,
    Parameter("connection_id", _TEXT, "Groups of one connection."),
    Parameter("name", _TEXT, "The exact name."),
    Parameter("external_id", _TEXT, "The exact external id."),
    Parameter("search", _TEXT, "A part of the name or of the external id, in any case of letters."),
)
