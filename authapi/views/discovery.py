"""The published keys, and the discovery document. The document lists only supported features."""

from __future__ import annotations

from typing import Any

from authapi.client_auth import assertion, mutual_tls, public, secret_basic, secret_post
from authapi.client_auth.signatures import ALGORITHMS
from authapi.edge import mtls
from authapi.factors.settings import offered_contexts
from authapi.grants.details import detail_types
from authapi.possession.proofs import ALGORITHMS as PROOF_ALGORITHMS
from authapi.protocols.oauth.checks import PROMPTS
from authapi.protocols.oauth.engine import SERVED_GRANTS
from authapi.protocols.oauth.views.check_session import PATH as CHECK_SESSION
from authapi.tenant_settings import SignInSettings, sign_in_settings
from authapi.tokens.keys import published_keys
from authapi.tokens.profile_claims import CLAIMS_OF_SCOPE, SIGN_IN_SCOPES
from authapi.tokens.signing import ALGORITHMS as TOKEN_ALGORITHMS
from authapi.upstream.global_revocation import TYPE
from authapi.views.chain import Answer, Call, hot_endpoint, json_answer
from identity.hosts import HostMatch

PUSHED_REQUEST_ENDPOINT = "pushed_authorization_request_endpoint"
# Seconds for which clients may cache the keys. The time is short, so that clients have the next key long before the service signs with it.
_CACHE = {"Cache-Control": "public, max-age=60"}
_METHODS = (secret_basic.METHOD, secret_post.METHOD, assertion.METHOD, public.METHOD)
_MTLS_METHODS = (mutual_tls.CA_SIGNED, mutual_tls.SELF_SIGNED)
_TOKEN_CLAIMS = (
    "acr", "amr", "at_hash", "aud", "auth_time", "c_hash", "exp", "iat", "iss", "nonce", "org_id", "org_name", "s_hash", "sid", "sub",
)  # fmt: skip
# Scopes that are accepted without effect, and not listed. Profiles have no postal address, so `address` has no effect.
_SILENT_SCOPES = {"address"}
# The members that are equal for all tenants. As in the upstream service, `web_message` is supported but not listed.
_SERVED: dict[str, Any] = {
    "response_types_supported": [
        "code", "token", "id_token", "code token", "code id_token", "token id_token", "code token id_token",
    ],
    "response_modes_supported": ["query", "fragment", "form_post"],
    "scopes_supported": ["openid", *sorted(SIGN_IN_SCOPES - {"openid"} - _SILENT_SCOPES)],
    "claims_supported": sorted({*_TOKEN_CLAIMS, *(claim for claims in CLAIMS_OF_SCOPE.values() for claim in claims)}),
    "claims_parameter_supported": True,
    "request_parameter_supported": True,
    "request_object_signing_alg_values_supported": list(ALGORITHMS),
    "request_uri_parameter_supported": False,
    # Clients registered as non-conformant may also use the PKCE method `plain`. The document lists only methods that work for every client.
    "code_challenge_methods_supported": ["S256"],
    "prompt_values_supported": sorted(PROMPTS),
    "dpop_signing_alg_values_supported": list(PROOF_ALGORITHMS),
    "subject_types_supported": ["public"],
    "id_token_signing_alg_values_supported": list(TOKEN_ALGORITHMS),
    "global_token_revocation_endpoint_auth_methods_supported": [TYPE],
    "backchannel_logout_supported": True,
    "backchannel_logout_session_supported": True,
    "frontchannel_logout_supported": True,
    "frontchannel_logout_session_supported": True,
}  # fmt: skip


def discovery_document(host: HostMatch) -> dict[str, Any]:
    """Return the metadata of OpenID Connect Discovery 1.0, RFC 8414 and RFC 9207 for the issuer of this host."""
    issuer, tenant = host.issuer, sign_in_settings(host.tenant_id)
    document = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}authorize",
        "token_endpoint": f"{issuer}oauth/token",
        "userinfo_endpoint": f"{issuer}userinfo",
        "revocation_endpoint": f"{issuer}oauth/revoke",
        "mfa_challenge_endpoint": f"{issuer}mfa/challenge",
        # `{connectionName}` is a placeholder: the provider replaces it by the name of the connection.
        "global_token_revocation_endpoint": f"{issuer}oauth/global-token-revocation/connection/{{connectionName}}",
        **_pushing(issuer, tenant),
        **_elsewhere(issuer),
        **({"registration_endpoint": f"{issuer}oidc/register"} if tenant.takes_registrations else {}),
        "jwks_uri": f"{issuer}.well-known/jwks.json",
        "authorization_response_iss_parameter_supported": tenant.sends_issuer,
        **_SERVED,
        "grant_types_supported": ["implicit", *SERVED_GRANTS],
        "ui_locales_supported": list(tenant.enabled_locales),
    }
    if tenant.introspects_tokens:
        document["introspection_endpoint"] = f"{issuer}oauth/introspect"
    behind_edge = mtls.discovery_members(host, document)
    methods = [*_METHODS, *(_MTLS_METHODS if behind_edge else ())]
    for endpoint in ("token_endpoint", "revocation_endpoint", *(("introspection_endpoint",) if tenant.introspects_tokens else ())):
        proofs = [method for method in methods if method != public.METHOD] if endpoint == "introspection_endpoint" else methods
        document[f"{endpoint}_auth_methods_supported"] = proofs
        document[f"{endpoint}_auth_signing_alg_values_supported"] = list(ALGORITHMS)
    document |= behind_edge
    document |= _offered(host.tenant_id)
    if tenant.is_logout_endpoint_discovered:
        document["end_session_endpoint"] = f"{issuer}oidc/logout"
    if tenant.manages_sessions:
        document["check_session_iframe"] = f"{issuer}{CHECK_SESSION}"
    return document


def _offered(tenant_id: str) -> dict[str, list[str]]:
    """Return the lists that may be empty for a tenant: contexts, and types of authorization details (RFC 9396, 10)."""
    further = {
        "acr_values_supported": offered_contexts(tenant_id),
        "authorization_details_types_supported": detail_types.get(tenant_id),
    }
    return {name: list(values) for name, values in further.items() if values}


def _pushing(issuer: str, tenant: SignInSettings) -> dict[str, Any]:
    """Return the members of RFC 9126, 5 for pushed requests; empty if the tenant does not allow pushed requests."""
    if not tenant.takes_pushed_requests:
        return {}
    return {
        PUSHED_REQUEST_ENDPOINT: f"{issuer}oauth/par",
        "require_pushed_authorization_requests": tenant.requires_pushed_requests,
    }


def _elsewhere(issuer: str) -> dict[str, Any]:
    """Return the members of RFC 8628, 4 and OpenID CIBA Core 1.0, 4, for logins that are approved in another browser."""
    return {
        "device_authorization_endpoint": f"{issuer}oauth/device/code",
        "backchannel_authentication_endpoint": f"{issuer}bc-authorize",
        "backchannel_token_delivery_modes_supported": ["poll"],
        "backchannel_user_code_parameter_supported": False,
    }


def _jwks(call: Call) -> Answer:
    return json_answer({"keys": published_keys(call.host.tenant_id)}, headers=_CACHE)


def _discovery(call: Call) -> Answer:
    return json_answer(discovery_document(call.host), headers=_CACHE)


jwks = hot_endpoint(_jwks, name="jwks", methods=("GET",))
discovery = hot_endpoint(_discovery, name="discovery", methods=("GET",))
