"""Options that several strategies share. Pure."""

from __future__ import annotations

from identity.options.schemas.nodes import MAPPED, READABLE, SECRET, Each, Members, Node, readable

_FRONT_CHANNEL = Each(Members(readable("alias value")))
# Names of the metadata of a provider: from OpenID Connect Discovery 1.0, 3, from RFC 8414, 2, and from later specifications.
_METADATA = """
acr_values_supported authorization_endpoint authorization_response_iss_parameter_supported
authorization_signing_alg_values_supported backchannel_authentication_endpoint backchannel_logout_session_supported
backchannel_logout_supported backchannel_token_delivery_modes_supported backchannel_user_code_parameter_supported
check_session_iframe claim_types_supported claims_locales_supported claims_parameter_supported claims_supported
code_challenge_methods_supported device_authorization_endpoint display_values_supported dpop_signing_alg_values_supported
end_session_endpoint frontchannel_logout_session_supported frontchannel_logout_supported grant_types_supported
id_token_encryption_alg_values_supported id_token_encryption_enc_values_supported id_token_signing_alg_values_supported
introspection_endpoint introspection_endpoint_auth_methods_supported introspection_endpoint_auth_signing_alg_values_supported
issuer jwks_uri op_policy_uri op_tos_uri prompt_values_supported pushed_authorization_request_endpoint registration_endpoint
request_object_encryption_alg_values_supported request_object_encryption_enc_values_supported
request_object_signing_alg_values_supported request_parameter_supported request_uri_parameter_supported
require_pushed_authorization_requests require_request_uri_registration require_signed_request_object
response_modes_supported response_types_supported revocation_endpoint revocation_endpoint_auth_methods_supported
revocation_endpoint_auth_signing_alg_values_supported scopes_supported service_documentation signed_metadata
subject_types_supported tls_client_certificate_bound_access_tokens token_endpoint token_endpoint_auth_methods_supported
token_endpoint_auth_signing_alg_values_supported ui_locales_supported userinfo_encryption_alg_values_supported
userinfo_encryption_enc_values_supported userinfo_endpoint userinfo_signing_alg_values_supported
"""
METADATA = Members({**readable(_METADATA), "mtls_endpoint_aliases": Each(READABLE)})
ATTRIBUTE_MAP = Members({**readable("mapping_mode userinfo_scope"), "attributes": MAPPED})
PASSCODE = Members(readable("length time_step"))

COMMON: dict[str, Node] = {
    **readable(
        "strategy_version schema_version name icon_url tenant_domain domain_aliases non_persistent_attrs set_user_root_attributes"
        " should_trust_email_verified_connection brute_force_protection disable_signup disable_self_service_change_password"
        " global_token_revocation_jwt_iss global_token_revocation_jwt_sub"
    ),
    # The browser sends these values to the provider, so they are public.
    "upstream_params": _FRONT_CHANNEL,
    "authParams": Each(READABLE, is_plain_too=True, has_secret_names=True),
    "authParamsMap": Each(READABLE),
    "federated_connections_access_tokens": Members(readable("active")),
    **dict.fromkeys(("client_secret", "password", "private_key", "bindPassword", "token", "access_token", "refresh_token"), SECRET),
}
# Options with URLs to which the service sends the credentials of a connection. A caller that changes one of these URLs must send the
# credentials again. Otherwise the caller could redirect credentials to a URL of its choice.
TARGETS = (
    "issuer",
    "discovery_url",
    "domain",
    "token_endpoint",
    "pushed_authorization_request_endpoint",
    "oidc_metadata/issuer",
    "oidc_metadata/token_endpoint",
    "oidc_metadata/pushed_authorization_request_endpoint",
    "tokenURL",
    # This URL receives custom headers and the access tokens of users.
    "userInfoURL",
    "accessTokenURL",
    "requestTokenURL",
    "community_base_url",
    "baseUrl",
    "gateway_url",
)


def schema(*names: str, **nodes: Node) -> Members:
    """Return the schema of a strategy: the shared options, the readable options `names`, and other options with their nodes."""
    return Members({**COMMON, **readable(" ".join(names)), **nodes})
