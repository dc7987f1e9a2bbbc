"""OpenAPI schemas of sessions, refresh tokens, grants of users, blocks and the lines of `GET /logs`."""

from __future__ import annotations

from foundation.api.list_schemas import LIST_FORMS, PROJECTION, TAKE_FORM, fields_of, list_of, reference, sort_parameter, taken_list
from foundation.api.operations import TEXT, TIME, WHOLE, Parameter, Schema

_TEXT_OR_NULL: Schema = {"type": "string", "nullable": True}
_TIME_OR_NULL: Schema = {**TIME, "nullable": True}
_OBJECT: Schema = {"type": "object", "additionalProperties": True}
_DEVICE: Schema = {
    "type": "object",
    "properties": dict.fromkeys(("initial_ip", "initial_user_agent", "last_ip", "last_user_agent"), _TEXT_OR_NULL),
}

SESSION = reference("Session")
SESSIONS = taken_list("sessions", SESSION)
REFRESH_TOKEN = reference("RefreshToken")
REFRESH_TOKENS = taken_list("refresh_tokens", REFRESH_TOKEN)
TOKENS_OF_USER = taken_list("tokens", REFRESH_TOKEN)
USER_GRANTS = list_of("grants", reference("UserGrant"))
ACCEPTED: Schema = {"type": "object", "additionalProperties": False}
BLOCKS: Schema = {
    "type": "object",
    "required": ["blocked_for"],
    "properties": {"blocked_for": {"type": "array", "items": reference("Block")}},
}
LOG_LINE = reference("LogLine")
_LOG_LINES: Schema = {"type": "array", "items": LOG_LINE}
LOG_LINES: Schema = {
    "oneOf": [
        _LOG_LINES,
        {
            "type": "object",
            "required": ["start", "limit", "length", "total", "logs"],
            "properties": {**dict.fromkeys(("start", "limit", "length", "total"), WHOLE), "logs": _LOG_LINES},
        },
    ]
}
LOG_FIELDS = (
    "log_id",
    "date",
    "type",
    "description",
    "client_id",
    "client_name",
    "connection",
    "ip",
    "user_id",
    "user_name",
    "user_agent",
    "scope",
    "details",
)
_DEVICE_CREDENTIAL_TYPES = ["public_key", "refresh_token", "rotating_refresh_token"]
_DEVICE_CREDENTIAL: dict[str, Schema] = {
    **dict.fromkeys(("id", "device_name", "device_id", "user_id", "client_id"), TEXT),
    "type": {**TEXT, "enum": _DEVICE_CREDENTIAL_TYPES},
}
DEVICE_CREDENTIAL_FIELDS = tuple(_DEVICE_CREDENTIAL)
REGISTERED_DEVICE = reference("RegisteredDevice")
DEVICE_CREDENTIALS = list_of("device_credentials", reference("DeviceCredential"))
COMPONENTS: dict[str, Schema] = {
    # No member is required, because `fields` may leave out any member.
    "DeviceCredential": {"type": "object", "properties": _DEVICE_CREDENTIAL},
    "RegisteredDevice": {"type": "object", "required": ["id"], "properties": {"id": TEXT}},
    "Session": {
        "type": "object",
        "properties": {
            "id": TEXT,
            "user_id": TEXT,
            **dict.fromkeys(("created_at", "updated_at", "authenticated_at", "last_interacted_at", "idle_expires_at", "expires_at"), TIME),
            "device": _DEVICE,
            "clients": {"type": "array", "items": {"type": "object", "required": ["client_id"], "properties": {"client_id": TEXT}}},
            "authentication": {
                "type": "object",
                "properties": {"methods": {"type": "array", "items": {"type": "object", "properties": {"name": TEXT, "timestamp": TIME}}}},
            },
            "session_metadata": _OBJECT,
        },
    },
    "RefreshToken": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("id", "user_id", "client_id"), TEXT),
            "session_id": {**TEXT, "nullable": True},
            "created_at": TIME,
            **dict.fromkeys(("idle_expires_at", "expires_at", "last_exchanged_at"), _TIME_OR_NULL),
            "rotating": {"type": "boolean"},
            "resource_servers": {
                "type": "array",
                "items": {"type": "object", "properties": {"audience": TEXT, "scopes": {**TEXT, "description": "Separated by spaces."}}},
            },
            "device": _DEVICE,
            "refresh_token_metadata": _OBJECT,
        },
    },
    "UserGrant": {
        "type": "object",
        "properties": {**dict.fromkeys(("id", "clientID", "user_id", "audience"), TEXT), "scope": {"type": "array", "items": TEXT}},
    },
    "Block": {"type": "object", "required": ["identifier"], "properties": dict.fromkeys(("identifier", "ip", "connection"), TEXT)},
    "LogLine": {
        "type": "object",
        "properties": {
            **dict.fromkeys(LOG_FIELDS, TEXT),
            "date": TIME,
            "type": {
                **TEXT,
                "description": "`sapi` and `fapi` are successful and failed operations of clients and staff. `sdu` is a deleted user.",
            },
            "user_id": {**TEXT, "description": "The user who tried to log in, or the user that an operation changed or read."},
            "user_name": {**TEXT, "description": "The identifier that was typed, or the staff account that acted."},
            "scope": {**TEXT, "description": "Scopes that permitted an operation, separated by spaces."},
            "details": {**_OBJECT, "description": "For an operation: `request` and `response`, with secrets hidden."},
        },
    },
}
SESSION_FIELDS = fields_of(COMPONENTS["Session"])
REFRESH_TOKEN_FIELDS = fields_of(COMPONENTS["RefreshToken"])
USER_GRANT_FIELDS = fields_of(COMPONENTS["UserGrant"])
REFRESH_TOKEN_PARAMETERS = (
    Parameter("user_id", TEXT, "Tokens of this user.", is_required=True),
    Parameter("client_id", TEXT, "Only tokens of this client."),
    *TAKE_FORM,
)
DEVICE_CREDENTIAL_PARAMETERS = (
    *LIST_FORMS,
    Parameter("user_id", TEXT, "Credentials of one user."),
    Parameter("client_id", TEXT, "Credentials for one client."),
    Parameter("type", {**TEXT, "enum": _DEVICE_CREDENTIAL_TYPES}, "Default: `refresh_token`."),
)
GRANT_PARAMETERS = (
    *LIST_FORMS,
    Parameter("user_id", TEXT, "Grants of one user."),
    Parameter("client_id", TEXT, "Grants to one client."),
    Parameter("audience", TEXT, "Grants for one API."),
)
GRANTS_OF_USER = (Parameter("user_id", TEXT, "The user whose grants are deleted.", is_required=True),)
CONSIDER_ENABLEMENT = Parameter(
    "consider_brute_force_enablement",
    {"type": "boolean", "default": False},
    "Return an empty list if brute-force protection is disabled.",
)
IDENTIFIER = Parameter("identifier", TEXT, "Email address, username or phone number.", is_required=True)
_LOG_PAGE = LIST_FORMS[:3]
LOG_PARAMETERS = (
    *_LOG_PAGE,
    Parameter(
        "from",
        TEXT,
        "`log_id` of a line. The response has the later lines, oldest first. In the next request, send the `log_id` of the last line. To "
        "continue from a page of the list, send the `log_id` of a line that is older than ten minutes. If the line no longer exists, the "
        "list starts at the oldest line. `q` is ignored.",
    ),
    Parameter(
        "take",
        {"type": "integer", "minimum": 1, "maximum": 100, "default": 50},
        "Lines per response. Selects pages by checkpoint, which ignore `sort` and `q`.",
    ),
    Parameter("q", {**TEXT, "maxLength": 1024}, 'Query, such as `type:fp AND date:[2026-01-01 TO *]` or `user_name:"ada@example.com"`.'),
    Parameter("search", {**TEXT, "maxLength": 1024}, "Another name of `q`."),
    sort_parameter("date"),
    *PROJECTION,
)
USER_LOG_PARAMETERS = (*_LOG_PAGE, sort_parameter("date"), *PROJECTION)
