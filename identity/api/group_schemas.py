"""OpenAPI schemas and parameters of groups and their members."""

from __future__ import annotations

from foundation.api.list_schemas import TAKE_FORM, reference, taken_list
from foundation.api.operations import TEXT, Parameter, Schema
from identity import shapes

GROUP_FIELDS = shapes.GROUP.names
MEMBER_FIELDS = shapes.GROUP_MEMBER.names
GROUP = reference("Group")
TAKEN_GROUPS = taken_list("groups", GROUP)
MEMBERS = taken_list("members", reference("GroupMember"))
COMPONENTS: dict[str, Schema] = {
    # No member is required, because the parameter `fields` can leave out any member.
    "Group": {"type": "object", "properties": shapes.GROUP.properties},
    "GroupMember": {"type": "object", "properties": shapes.GROUP_MEMBER.properties},
}

LIST_PARAMETERS = (
    *TAKE_FORM,
    Parameter("connection_id", TEXT, "Only groups of this connection."),
    Parameter("name", TEXT, "The exact name."),
    Parameter("external_id", TEXT, "The exact external id."),
    Parameter("search", TEXT, "A part of the name or of the external id. Letter case is ignored."),
)
