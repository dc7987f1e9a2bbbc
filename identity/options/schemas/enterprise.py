"""Options of enterprise strategies. Pure."""

from __future__ import annotations

from identity.options.schemas.nodes import ADDRESS, READABLE, SECRET, Each, Members, Node, readable
from identity.options.schemas.shared import ATTRIBUTE_MAP, METADATA, schema

_KEY_PAIR = Members({"cert": READABLE, "key": SECRET})
_OIDC = """
client_id issuer discovery_url authorization_endpoint token_endpoint userinfo_endpoint jwks_uri end_session_endpoint
pushed_authorization_request_endpoint enable_pushed_authorization_requests scope type domain send_back_channel_nonce
useOauthSpecScope id_token_signed_response_algs id_token_session_expiry_supported dpop_signing_alg
token_endpoint_auth_method token_endpoint_auth_signing_alg token_endpoint_jwtca_aud_format
"""
_OIDC_NODES: dict[str, Node] = {
    "attribute_map": ATTRIBUTE_MAP,
    "connection_settings": Members(readable("pkce")),
    "oidc_metadata": METADATA,
}
_SAML = """
signInEndpoint signOutEndpoint disableSignout signingCert cert expires thumbprints thumbprints_sha384 cert_rollover_notification
entityId user_id_attribute signSAMLRequest signatureAlgorithm digestAlgorithm protocolBinding metadataXml
requestTemplate destinationUrl recipientUrl debug deflate discovery_url disableFieldsMapFix fieldsMapJsonRaw
"""
_SAML_NODES: dict[str, Node] = {
    "fieldsMap": Each(READABLE),
    "metadataUrl": ADDRESS,
    "idpinitiated": Members(readable("enabled client_id client_protocol client_authorizequery")),
    "assertion_decryption_settings": Members(readable("algorithm_profile algorithm_exceptions")),
    "subject": Each(READABLE),
    "oidc_metadata": METADATA,
    "signing_key": _KEY_PAIR,
    "decryptionKey": _KEY_PAIR,
}
# Switches that select the claims of a directory.
_DIRECTORY_SWITCHES = """
ext_access_token ext_account_enabled ext_admin ext_agreed_terms ext_assigned_licenses ext_assigned_plans ext_azure_id ext_city
ext_country ext_department ext_dir_sync_enabled ext_email ext_expires_in ext_family_name ext_fax ext_given_name ext_group_ids
ext_groups ext_groups_extended ext_is_admin ext_is_suspended ext_job_title ext_last_sync ext_mobile ext_name ext_nested_groups
ext_nickname ext_oid ext_phone ext_physical_delivery_office_name ext_postal_code ext_preferred_language ext_profile
ext_provisioned_plans ext_provisioning_errors ext_proxy_addresses ext_puid ext_refresh_token ext_roles ext_state ext_street
ext_telephoneNumber ext_tenantid ext_upn ext_usage_location ext_user_id
"""

OIDC = schema(_OIDC, **_OIDC_NODES)
SAML = schema(_SAML, **_SAML_NODES)
PING_FEDERATE = schema(_SAML, "pingFederateBaseUrl", **_SAML_NODES)
ADFS = schema(
    "adfs_server fedMetadataXml signInEndpoint entityId user_id_attribute thumbprints thumbprints_sha384 prev_thumbprints",
    "cert_rollover_notification",
    fieldsMap=Each(READABLE),
)
AD = schema(
    "ips agentIP agentMode agentVersion certAuth certs kerberos kerberos_only disable_cache signInEndpoint thumbprints",
    "thumbprints_sha384",
)
AZURE_AD = schema(
    "client_id app_id app_domain domain tenantId identity_api waad_protocol use_wsfed useCommonEndpoint userid_attribute scope",
    "max_groups_to_retrieve basic_profile granted api_enable_users api_enable_groups thumbprints thumbprints_sha384",
    "cert_rollover_notification",
    _DIRECTORY_SWITCHES,
)
GOOGLE_APPS = schema(
    "client_id domain scope email profile api_enable_users api_enable_groups allow_setting_login_scopes handle_login_from_social",
    "map_user_id_to_id admin_access_token_expiresin",
    _DIRECTORY_SWITCHES,
    admin_access_token=SECRET,
    admin_refresh_token=SECRET,
)
SHAREPOINT = schema("client_id scope")
OFFICE_365 = schema("client_id scope")
IP_RANGES = schema("ips")
