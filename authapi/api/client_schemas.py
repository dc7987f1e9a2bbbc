"""OpenAPI schemas of clients."""

from __future__ import annotations

from authapi.api.client_bodies import APP_TYPES
from authapi.compliance.levels import LEVELS
from authapi.models import SecondFactorPolicy
from foundation.api.list_schemas import LIST_FORMS, list_of, reference, taken_list
from foundation.api.operations import SWITCH, TEXT, TIME, Parameter, Schema

_TEXTS: Schema = {"type": "array", "items": TEXT}
_OBJECT: Schema = {"type": "object", "additionalProperties": True}
_PROPERTIES: dict[str, Schema] = {
    "tenant": TEXT,
    "client_id": TEXT,
    "client_secret": {**TEXT, "description": "Only in the response to the request that created the secret."},
    "global": SWITCH,
    "app_type": {**TEXT, "enum": list(APP_TYPES)},
    **dict.fromkeys(("name", "description", "logo_uri", "initiate_login_uri", "token_endpoint_auth_method"), TEXT),
    **dict.fromkeys(("organization_usage", "organization_require_behavior"), TEXT),
    "second_factor_policy": {**TEXT, "enum": SecondFactorPolicy.values},
    **dict.fromkeys(("callbacks", "allowed_logout_urls", "allowed_origins", "web_origins", "client_aliases"), _TEXTS),
    **dict.fromkeys(("allowed_clients", "grant_types"), _TEXTS),
    **dict.fromkeys(("client_metadata", "jwt_configuration", "refresh_token", "default_organization", "oidc_logout"), _OBJECT),
    "client_authentication_methods": {**_OBJECT, "description": "The ids of the credentials in use."},
    **dict.fromkeys(("is_first_party", "oidc_conformant", "sso_disabled", "cross_origin_authentication"), SWITCH),
    **dict.fromkeys(("custom_login_page_on", "is_token_endpoint_ip_header_trusted"), SWITCH),
    **dict.fromkeys(("require_pushed_authorization_requests", "require_proof_of_possession"), SWITCH),
    **dict.fromkeys(("cross_origin_loc", "form_template", "custom_login_page", "custom_login_page_preview"), TEXT),
    **dict.fromkeys(("third_party_security_mode", "redirection_policy", "resource_server_identifier"), TEXT),
    **dict.fromkeys(("sso", "skip_non_verifiable_callback_uri_confirmation_prompt"), SWITCH),
    **dict.fromkeys(("organization_discovery_methods", "async_approval_notification_channels"), _TEXTS),
    **dict.fromkeys(("addons", "mobile", "native_social_login", "fedcm_login", "token_exchange", "session_transfer"), _OBJECT),
    **dict.fromkeys(("token_quota", "encryption_key", "anonymous_sessions", "identity_assertion_authorization_grant"), _OBJECT),
    **dict.fromkeys(("token_vault_privileged_access", "express_configuration", "my_organization_configuration"), _OBJECT),
    **dict.fromkeys(("b2b_integration_configuration", "oidc_support"), _OBJECT),
    "signed_request_object": {
        **_OBJECT,
        "description": "Contains `required`, and the ids of the keys that verify signed requests. These keys cannot be deleted.",
    },
    "jwks_uri": {**TEXT, "description": "Address of the keys that verify signed requests of the client."},
    "compliance_level": {**TEXT, "enum": list(LEVELS), "description": "The FAPI profile whose rules the client must follow."},
    "oauth_standard_errors": {**SWITCH, "description": "Errors have the statuses and codes of RFC 6749, and `redirect_uri` is required."},
    "frontchannel_logout_uri": {**TEXT, "description": "The browser loads this URL in a hidden frame when the session ends."},
    "frontchannel_logout_session_required": {**SWITCH, "description": "No effect: the URL always contains `iss` and `sid`."},
    "updated_at_as_text": {**SWITCH, "description": "`updated_at` in profiles is ISO 8601 text instead of a number of seconds."},
    "authorization_details_types": {
        **_TEXTS,
        "description": "The types of authorization details that the client may request. If absent, it may request all types of each API.",
    },
    "par_request_expiry": {"type": "integer"},
    "created_at": TIME,
    "updated_at": TIME,
}
CLIENT_FIELDS = tuple(name for name in _PROPERTIES if name != "client_secret")
CLIENT = reference("Client")
CLIENTS = list_of("clients", CLIENT)
_CLIENT_ID: Schema = {"type": "object", "required": ["client_id"], "properties": {"client_id": TEXT}}
CONNECTION_CLIENTS = taken_list("clients", _CLIENT_ID)
COMPONENTS: dict[str, Schema] = {"Client": {"type": "object", "properties": _PROPERTIES}}
LIST_PARAMETERS = (
    *LIST_FORMS,
    Parameter("is_global", SWITCH, "Whether to list global clients. Default: false."),
    Parameter("is_first_party", SWITCH, "True: only first-party clients. False: only third-party clients."),
    Parameter("app_type", TEXT, "Types, separated by commas."),
)
