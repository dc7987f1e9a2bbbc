"""OpenAPI schemas and parameters of users."""

from __future__ import annotations

from foundation.api.list_schemas import COUNTING_LIST_FORMS, list_of, reference, sort_parameter
from foundation.api.operations import SWITCH, TEXT, Parameter, Schema
from identity import shapes
from identity.api.user_search import SORTS

USER_FIELDS = shapes.USER.names
USER = reference("User")
USERS = list_of("users", USER)
IDENTITIES: Schema = {"type": "array", "items": reference("Identity")}
COMPONENTS: dict[str, Schema] = {
    "Identity": {"type": "object", "required": list(shapes.IDENTITY.shape().required), "properties": shapes.IDENTITY.properties},
    "User": {"type": "object", "description": "Empty fields are left out.", "properties": shapes.USER.properties},
}

EMAIL = Parameter("email", TEXT, "The whole email address. Letter case is ignored.", is_required=True)
LIST_PARAMETERS = (
    *COUNTING_LIST_FORMS,
    Parameter("q", TEXT, "A search in Lucene's syntax, such as `email:*@corp.com AND NOT blocked:true`."),
    sort_parameter(*SORTS),
    Parameter("connection", TEXT, "Name of a connection."),
    Parameter("search_engine", {"type": "string", "enum": ["v1", "v2", "v3"]}, "`v1` and `v2` are accepted and work like `v3`."),
    Parameter("primary_order", SWITCH, "Accepted without effect."),
)
