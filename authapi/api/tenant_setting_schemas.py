"""What the OpenAPI document says about the settings of a tenant."""

from __future__ import annotations

from authapi.services.tenant_settings import MODES, SHIELDS
from authapi.tenant_settings import LIFETIMES
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
    "authorization_response_iss_parameter_supported": SWITCH,
    "allow_organization_name_in_authentication_api": SWITCH,
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
