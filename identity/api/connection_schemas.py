"""What the OpenAPI document says about connections."""

from __future__ import annotations

from foundation.api.list_schemas import LIST_FORMS, list_of, reference
from foundation.api.operations import Parameter, Schema

_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_SWITCH: Schema = {"type": "boolean"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_ACTIVITY: Schema = {"type": "object", "properties": {"active": _SWITCH}}

_PROPERTIES: dict[str, Schema] = {
    "id": {**_TEXT, "pattern": "^con_[A-Za-z0-9]{16}$"},
    "name": _TEXT,
    "strategy": _TEXT,
    "display_name": _TEXT,
    "options": {
        "type": "object",
        "additionalProperties": True,
        "description": "Secrets, and members that the strategy does not know, are written and never returned. Such a member stays until "
        "it is sent again; null removes it, and so does a change that leaves out the readable object around it. Credentials have to be "
        "sent again where an address changes that they are sent to.",
    },
    "realms": _TEXTS,
    "enabled_clients": {**_TEXTS, "description": "Not in lists, unless named in `fields`."},
    "show_as_button": _SWITCH,
    "metadata": {"type": "object", "additionalProperties": _TEXT},
    "authentication": _ACTIVITY,
    "connected_accounts": _ACTIVITY,
    "is_domain_connection": _SWITCH,
    "created_at": _TIME,
    "updated_at": _TIME,
}
CONNECTION_FIELDS = tuple(_PROPERTIES)
CONNECTION = reference("Connection")
CONNECTIONS = list_of("connections", CONNECTION)
DELETED: Schema = {"type": "object", "required": ["deleted_at"], "properties": {"deleted_at": _TIME}}
# Nothing is required: `fields` leaves out what it does not name.
COMPONENTS: dict[str, Schema] = {"Connection": {"type": "object", "properties": _PROPERTIES}}

LIST_PARAMETERS = (
    *LIST_FORMS,
    Parameter("strategy", _TEXTS, "Strategies; repeat the parameter for several."),
    Parameter("name", _TEXT, "The exact name."),
)
