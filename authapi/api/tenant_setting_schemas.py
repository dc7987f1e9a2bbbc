"""OpenAPI schemas of the settings of a tenant."""

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
    "require_pushed_authorization_requests": {**SWITCH, "description": "Applications must push their authorization requests."},
    "require_initial_access_token": {
        **SWITCH,
        "description": "To register themselves, applications need a token of an administrator.",
    },
    "authorization_response_iss_parameter_supported": SWITCH,
    "session_management_supported": {**SWITCH, "description": "Applications may monitor the session of the browser in a hidden frame."},
    "token_introspection_supported": {
        **SWITCH,
        "description": "Authenticated applications may introspect their own tokens and tokens for their API.",
    },
    "allow_organization_name_in_authentication_api": SWITCH,
    "resource_parameter_profile": {
        **TEXT,
        "enum": ["audience", "compatibility"],
        "description": "With `compatibility`, the service reads `resource` (RFC 8707) if a request names no audience.",
    },
    "device_flow": {"type": "object", "properties": {"charset": {**TEXT, "enum": list(CHARSETS)}, "mask": TEXT}},
    "backchannel_authentication": {
        "type": "object",
        "properties": {"channel": {**TEXT, "enum": list(CHANNELS)}, "webhook_url": TEXT},
        "description": "How users are notified of requests that they approve in another browser (CIBA). `webhook_secret` is write-only.",
    },
    "new_device_mails": {
        **TEXT,
        "enum": list(NEW_DEVICE_MAILS),
        "description": "Mails to users about logins in unknown browsers. `own` excludes logins at other providers.",
    },
    "account_page": {
        "type": "object",
        "description": "Functions of the account page at `/account`. Users of all `connections` may log in to it. If the list is empty, "
        "users of every connection that an application uses may log in to it.",
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
            "allowlist": {**_TEXTS, "description": "IP addresses and networks whose failures are not counted."},
            "mode": {**TEXT, "enum": list(MODES)},
            "max_attempts": {"type": "integer"},
        },
    },
}
