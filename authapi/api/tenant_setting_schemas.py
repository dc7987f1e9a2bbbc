"""What the OpenAPI document says about the settings of a tenant."""

from __future__ import annotations

from authapi.clients.user_codes import CHARSETS
from authapi.services.notifiers import CHANNELS
from authapi.services.tenant_settings import MODES, SHIELDS
from authapi.tenant_settings import LIFETIMES, NEW_DEVICE_MAILS
from foundation.api.list_schemas import reference
from foundation.api.operations import SWITCH, TEXT, Schema

_TEXTS: Schema = {"type": "array", "items": TEXT}
_HOURS: Schema = {"type": "number", "description": "Hours."}
_OBJECT: Schema = {"type": "object", "additionalProperties": True}
_SETTINGS: dict[str, Schema] = {
    **dict.fromkeys(("friendly_name", "picture_url", "support_email", "support_url"), TEXT),
    **dict.fromkeys(("default_directory", "default_audience", "default_redirection_uri"), TEXT),
    **dict.fromkeys(LIFETIMES, _HOURS),
    **dict.fromkeys(("allowed_logout_urls", "enabled_locales", "acr_values_supported"), _TEXTS),
    **dict.fromkeys(("error_page", "change_password"), _OBJECT),
    "session_cookie": {"type": "object", "required": ["mode"], "properties": {"mode": TEXT}},
    "sessions": {"type": "object", "properties": {"oidc_logout_prompt_enabled": SWITCH}},
    "oidc_logout": {"type": "object", "properties": {"rp_logout_end_session_endpoint_discovery": SWITCH}},
    "mtls": {"type": "object", "properties": {"enable_endpoint_aliases": SWITCH}},
    "pushed_authorization_requests_supported": SWITCH,
    "require_pushed_authorization_requests": {**SWITCH, "description": "No application sends its authorization request in the address."},
    "require_initial_access_token": {**SWITCH, "description": "Applications register themselves with a token of an administrator only."},
    "authorization_response_iss_parameter_supported": SWITCH,
    "session_management_supported": {**SWITCH, "description": "Applications may watch the session of the browser in a hidden frame."},
    "token_introspection_supported": {**SWITCH, "description": "Applications that authenticate may ask about their tokens."},
    "allow_organization_name_in_authentication_api": SWITCH,
    "resource_parameter_profile": {
        **TEXT,
        "enum": ["audience", "compatibility"],
        "description": "`compatibility` reads `resource` (RFC 8707) where a request names no audience.",
    },
    "device_flow": {"type": "object", "properties": {"charset": {**TEXT, "enum": list(CHARSETS)}, "mask": TEXT}},
    "backchannel_authentication": {
        "type": "object",
        "properties": {"channel": {**TEXT, "enum": list(CHANNELS)}, "webhook_url": TEXT},
        "description": "How users hear of requests that they approve elsewhere (CIBA). `webhook_secret` is written and never read.",
    },
    "new_device_mails": {
        **TEXT,
        "enum": list(NEW_DEVICE_MAILS),
        "description": "Whether users are told of logins with browsers that are not known; `own` leaves out providers elsewhere.",
    },
    "account_page": {
        "type": "object",
        "description": "What people may do for themselves at `/account`. No connection named: all that an application uses.",
        "properties": {"enabled": SWITCH, "data_export": SWITCH, "deletion": SWITCH, "connections": _TEXTS},
    },
    "flags": {"type": "object", "additionalProperties": SWITCH},
}
SETTINGS_FIELDS = tuple(_SETTINGS)
SETTINGS = reference("TenantSettings")
BRUTE_FORCE = reference("BruteForceProtection")
BRANDING = reference("Branding")
COMPONENTS: dict[str, Schema] = {
    "TenantSettings": {"type": "object", "properties": _SETTINGS},
    "Branding": {
        "type": "object",
        "properties": {
            "logo_url": TEXT,
            "favicon_url": TEXT,
            "colors": {"type": "object", "properties": {"primary": TEXT, "page_background": TEXT}},
            "font": {"type": "object", "properties": {"url": TEXT}},
        },
    },
    "BruteForceProtection": {
        "type": "object",
        "required": ["enabled", "shields", "allowlist", "mode", "max_attempts"],
        "properties": {
            "enabled": SWITCH,
            "shields": {"type": "array", "items": {**TEXT, "enum": list(SHIELDS)}},
            "allowlist": {**_TEXTS, "description": "Addresses and networks whose failures are not counted."},
            "mode": {**TEXT, "enum": list(MODES)},
            "max_attempts": {"type": "integer"},
        },
    },
}
