"""The published keys, and the document that says what is served. It lists nothing that does not answer yet."""

from __future__ import annotations

from typing import Any

from authapi.client_auth import assertion, mutual_tls, public, secret_basic, secret_post
from authapi.client_auth.signatures import ALGORITHMS
from authapi.edge import mtls
from authapi.possession.proofs import ALGORITHMS as PROOF_ALGORITHMS
from authapi.protocols.oauth.checks import PROMPTS
from authapi.protocols.oauth.engine import SERVED_GRANTS
from authapi.tenant_settings import SignInSettings, sign_in_settings
from authapi.tokens.keys import published_keys
from authapi.tokens.profile_claims import CLAIMS_OF_SCOPE, SIGN_IN_SCOPES
from authapi.views.chain import Answer, Call, hot_endpoint, json_answer
from identity.hosts import HostMatch

PUSHED_REQUEST_ENDPOINT = "pushed_authorization_request_endpoint"
# Short, so that a key published by a rotation is known long before it signs.
_CACHE = {"Cache-Control": "public, max-age=60"}
_METHODS = (secret_basic.METHOD, secret_post.METHOD, assertion.METHOD, public.METHOD)
_MTLS_METHODS = (mutual_tls.CA_SIGNED, mutual_tls.SELF_SIGNED)
_TOKEN_CLAIMS = (
    "amr", "at_hash", "aud", "auth_time", "c_hash", "exp", "iat", "iss", "nonce", "org_id", "org_name", "s_hash", "sid", "sub",
)  # fmt: skip
# Taken, and without effect: no profile has an address.
_SILENT_SCOPES = {"address"}
# What is the same for every tenant. `web_message` works and stays unlisted, as upstream.
_SERVED: dict[str, Any] = {
    "response_types_supported": [
        "code", "token", "id_token", "code token", "code id_token", "token id_token", "code token id_token",
    ],
    "response_modes_supported": ["query", "fragment", "form_post"],
    "scopes_supported": ["openid", *sorted(SIGN_IN_SCOPES - {"openid"} - _SILENT_SCOPES)],
    "claims_supported": sorted({*_TOKEN_CLAIMS, *(claim for claims in CLAIMS_OF_SCOPE.values() for claim in claims)}),
    "claims_parameter_supported": False,
    "request_parameter_supported": True,
    "request_object_signing_alg_values_supported": list(ALGORITHMS),
    "request_uri_parameter_supported": False,
    # `plain` is for clients that are registered as non-conformant; what is listed works for every client.
    "code_challenge_methods_supported": ["S256"],
    "prompt_values_supported": sorted(PROMPTS),
    "dpop_signing_alg_values_supported": list(PROOF_ALGORITHMS),
    "subject_types_supported": ["public"],
    "id_token_signing_alg_values_supported": ["HS256", "RS256"],
    "backchannel_logout_supported": True,
    "backchannel_logout_session_supported": True,
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
        **_pushing(issuer, tenant),
        "jwks_uri": f"{issuer}.well-known/jwks.json",
        "authorization_response_iss_parameter_supported": tenant.sends_issuer,
        **_SERVED,
        "grant_types_supported": ["implicit", *SERVED_GRANTS],
        "ui_locales_supported": list(tenant.enabled_locales),
    }
    behind_edge = mtls.discovery_members(host, document)
    methods = [*_METHODS, *(_MTLS_METHODS if behind_edge else ())]
    for endpoint in ("token_endpoint", "revocation_endpoint"):
        document[f"{endpoint}_auth_methods_supported"] = methods
        document[f"{endpoint}_auth_signing_alg_values_supported"] = list(ALGORITHMS)
    document |= behind_edge
    if tenant.is_logout_endpoint_discovered:
        document["end_session_endpoint"] = f"{issuer}oidc/logout"
    return document


def _pushing(issuer: str, tenant: SignInSettings) -> dict[str, Any]:
    """Return what RFC 9126, 5 says of pushed requests: nothing where they are off."""
    if not tenant.takes_pushed_requests:
        return {}
    return {
        PUSHED_REQUEST_ENDPOINT: f"{issuer}oauth/par",
        "require_pushed_authorization_requests": tenant.requires_pushed_requests,
    }


def _jwks(call: Call) -> Answer:
    return json_answer({"keys": published_keys(call.host.tenant_id)}, headers=_CACHE)


def _discovery(call: Call) -> Answer:
    return json_answer(discovery_document(call.host), headers=_CACHE)


jwks = hot_endpoint(_jwks, name="jwks", methods=("GET",))
discovery = hot_endpoint(_discovery, name="discovery", methods=("GET",))
