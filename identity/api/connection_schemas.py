"""OpenAPI schemas and parameters of connections."""

from __future__ import annotations

from foundation.api.list_schemas import LIST_FORMS, list_of, reference
from foundation.api.operations import TEXT, TIME, Parameter, Schema
from identity import shapes

_TEXTS: Schema = {"type": "array", "items": TEXT}

CONNECTION_FIELDS = shapes.CONNECTION.names
CONNECTION = reference("Connection")
CONNECTIONS = list_of("connections", CONNECTION)
DELETED: Schema = {"type": "object", "required": ["deleted_at"], "properties": {"deleted_at": TIME}}
# No member is required, because `fields` can leave out any of them.
COMPONENTS: dict[str, Schema] = {"Connection": {"type": "object", "properties": shapes.CONNECTION.properties}}

LIST_PARAMETERS = (
    *LIST_FORMS,
    Parameter("strategy", _TEXTS, "Only connections of this strategy. Repeat the parameter for several strategies."),
    Parameter("name", TEXT, "The exact name."),
)
