"""The tests use every value of the discovery document.

A test fails for a value without a use. Then either the service does not support the value, or the function that uses the value is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from authapi.services.tenant_settings import update_tenant_settings
from tests.conformance.openid import used_factors, used_further, used_requests, used_tokens
from tests.conformance.openid.provider import Provider

Use = Callable[[Provider, Any], None]
# Settings that a tenant switches on so that its document has all possible members.
EVERYTHING: dict[str, Any] = {
    "enabled_locales": ["en", "de", "ar"],
    "allow_organization_name_in_authentication_api": True,
    "flags": {"enable_dynamic_client_registration": True},
    "require_initial_access_token": False,
    "token_introspection_supported": True,
    "session_management_supported": True,
}


def use_claim(provider: Provider, value: str) -> None:
    assert value in TOLD[provider.host]


def use_grant(provider: Provider, value: str) -> None:
    (used_tokens.GRANTS_OF_TOKENS | used_further.FURTHER_GRANTS | used_factors.GRANTS_OF_FACTORS)[value](provider)


# The function that uses each member. It is called with the value of the member, or with each element if the value is a list.
USES: dict[str, Use] = {
    "issuer": used_requests.use_issuer,
    "authorization_endpoint": used_requests.use_authorization_endpoint,
    "pushed_authorization_request_endpoint": used_requests.use_pushed_authorization_request_endpoint,
    "require_pushed_authorization_requests": used_requests.use_require_pushed_authorization_requests,
    "end_session_endpoint": used_requests.use_end_session_endpoint,
    "authorization_response_iss_parameter_supported": used_requests.use_authorization_response_iss,
    "response_types_supported": used_requests.use_response_type,
    "response_modes_supported": used_requests.use_response_mode,
    "code_challenge_methods_supported": used_requests.use_code_challenge_method,
    "prompt_values_supported": used_requests.use_prompt,
    "ui_locales_supported": used_requests.use_locale,
    "request_parameter_supported": used_requests.use_request_parameter,
    "request_object_signing_alg_values_supported": used_requests.use_request_algorithm,
    "request_uri_parameter_supported": used_requests.use_request_uri_parameter,
    "claims_parameter_supported": used_requests.use_claims_parameter,
    "scopes_supported": used_requests.use_scope,
    "claims_supported": use_claim,
    "subject_types_supported": used_requests.use_subject_type,
    "token_endpoint": used_tokens.use_token_endpoint,
    "userinfo_endpoint": used_tokens.use_userinfo_endpoint,
    "revocation_endpoint": used_tokens.use_revocation_endpoint,
    "mfa_challenge_endpoint": used_factors.use_mfa_challenge_endpoint,
    "jwks_uri": used_tokens.use_jwks_uri,
    "grant_types_supported": use_grant,
    "token_endpoint_auth_methods_supported": used_tokens.use_token_method,
    "token_endpoint_auth_signing_alg_values_supported": used_tokens.use_token_algorithm,
    "revocation_endpoint_auth_methods_supported": used_tokens.use_revocation_method,
    "revocation_endpoint_auth_signing_alg_values_supported": used_tokens.use_revocation_algorithm,
    "id_token_signing_alg_values_supported": used_tokens.use_id_token_algorithm,
    "dpop_signing_alg_values_supported": used_tokens.use_proof_algorithm,
    "tls_client_certificate_bound_access_tokens": used_tokens.use_bound_tokens,
    "mtls_endpoint_aliases": used_tokens.use_mtls_alias,
    "backchannel_logout_supported": used_tokens.use_backchannel_logout,
    "backchannel_logout_session_supported": used_tokens.use_backchannel_session,
    "backchannel_authentication_endpoint": used_further.use_backchannel_authentication_endpoint,
    "backchannel_token_delivery_modes_supported": used_further.use_delivery_mode,
    "backchannel_user_code_parameter_supported": used_further.use_user_code_parameter,
    "device_authorization_endpoint": used_further.use_device_authorization_endpoint,
    "registration_endpoint": used_further.use_registration_endpoint,
    "introspection_endpoint": used_further.use_introspection_endpoint,
    "introspection_endpoint_auth_methods_supported": used_further.use_introspection_method,
    "introspection_endpoint_auth_signing_alg_values_supported": used_further.use_introspection_algorithm,
    "authorization_details_types_supported": used_further.use_detail_type,
    "acr_values_supported": used_further.use_acr_value,
    "check_session_iframe": used_further.use_check_session_iframe,
    "frontchannel_logout_supported": used_further.use_frontchannel_logout,
    "frontchannel_logout_session_supported": used_further.use_frontchannel_session,
    "global_token_revocation_endpoint": used_further.use_global_token_revocation_endpoint,
    "global_token_revocation_endpoint_auth_methods_supported": used_further.use_global_revocation_method,
}
# The names of the claims that logins returned. The keys are the hosts of the providers.
TOLD: dict[str, frozenset[str]] = {}


@pytest.fixture(scope="module")
def everything(provider: Provider) -> dict[str, Any]:
    """Return the discovery document of a tenant that has switched every feature on."""
    update_tenant_settings(tenant_id=provider.tenant.pk, changes=EVERYTHING)
    used_further.add_detail_type(provider)
    provider.changed()
    return provider.metadata


@pytest.mark.parametrize("member", USES)
def test_each_value_of_the_document_has_a_use(provider: Provider, everything: dict[str, Any], member: str) -> None:
    value = everything[member]
    values = value if isinstance(value, list) else [value]
    assert values
    assert len(values) == len({str(one) for one in values}), "a value is listed twice"
    if member == "claims_supported":
        TOLD[provider.host] = used_requests.seen_claims(provider)
    for one in values:
        USES[member](provider, one)


def test_each_member_of_the_document_has_a_use(everything: dict[str, Any]) -> None:
    assert everything.keys() == USES.keys()


def test_claims_of_real_logins_are_in_the_document(provider: Provider, everything: dict[str, Any]) -> None:
    assert used_requests.seen_claims(provider) - set(everything["claims_supported"]) == set()


def test_both_discovery_documents_are_equal(provider: Provider, everything: dict[str, Any]) -> None:
    other = provider.ask("GET", f"{provider.issuer}.well-known/oauth-authorization-server")
    assert other.body == provider.ask("GET", f"{provider.issuer}.well-known/openid-configuration").body
