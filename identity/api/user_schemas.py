"""What the OpenAPI document says about users."""

from __future__ import annotations

from foundation.api.list_schemas import COUNTING_LIST_FORMS, list_of, reference, sort_parameter
from foundation.api.operations import Parameter, Schema
from identity.api.user_search import SORTS

_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_SWITCH: Schema = {"type": "boolean"}
_FREE: Schema = {"type": "object", "additionalProperties": True}

_IDENTITY_SCHEMA: Schema = {
    "type": "object",
    "required": ["connection", "user_id", "provider", "isSocial"],
    "properties": {
        "connection": {**_TEXT, "description": "Name of the connection."},
        "user_id": {**_TEXT, "description": "Without the provider."},
        "provider": _TEXT,
        "isSocial": _SWITCH,
        "profileData": {**_FREE, "description": "Only where the user has two identities or more."},
    },
}
_USER_PROPERTIES: dict[str, Schema] = {
    "user_id": {**_TEXT, "description": "<provider>|<id>"},
    "email": {**_TEXT, "format": "email"},
    "email_verified": _SWITCH,
    "username": _TEXT,
    "phone_number": _TEXT,
    "phone_verified": _SWITCH,
    "name": _TEXT,
    "nickname": _TEXT,
    "given_name": _TEXT,
    "family_name": _TEXT,
    "picture": {**_TEXT, "format": "uri"},
    "blocked": _SWITCH,
    "user_metadata": _FREE,
    "app_metadata": _FREE,
    "identities": {"type": "array", "items": reference("Identity")},
    "created_at": _TIME,
    "updated_at": _TIME,
    "last_login": _TIME,
    "last_ip": _TEXT,
    "logins_count": {"type": "integer"},
    "last_password_reset": _TIME,
    "multifactor": {"type": "array", "items": _TEXT},
    "multifactor_last_modified": _TIME,
}
USER_FIELDS = tuple(_USER_PROPERTIES)
USER = reference("User")
USERS = list_of("users", USER)
IDENTITIES: Schema = {"type": "array", "items": reference("Identity")}
COMPONENTS: dict[str, Schema] = {
    "Identity": _IDENTITY_SCHEMA,
    "User": {"type": "object", "description": "Empty fields are left out.", "properties": _USER_PROPERTIES},
}

EMAIL = Parameter("email", _TEXT, "The whole address; letters in any case.", is_required=True)
LIST_PARAMETERS = (
    *COUNTING_LIST_FORMS,
    Parameter("q", _TEXT, "A search in Lucene's syntax, such as `email:*@corp.com AND NOT blocked:true`."),
    sort_parameter(*SORTS),
    Parameter("connection", _TEXT, "Name of a connection."),
    Parameter("search_engine", {"type": "string", "enum": ["v1", "v2", "v3"]}, "Each is answered as `v3`."),
    Parameter("primary_order", _SWITCH, "Accepted and without effect."),
)
