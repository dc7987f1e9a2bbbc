"""The discovery document has the members that Discovery 1.0 and FAPI 2.0 require."""

from __future__ import annotations

import json

from authapi.client_auth.signatures import ALGORITHMS
from tests.conformance.openid.plans import BankVariant
from tests.conformance.openid.provider import Provider

# Discovery 1.0, 3.
REQUIRED = (
    "issuer", "authorization_endpoint", "token_endpoint", "jwks_uri", "response_types_supported", "subject_types_supported",
    "id_token_signing_alg_values_supported",
)  # fmt: skip
# A provider with dynamic registration must support all three types.
DYNAMIC_TYPES = ("code", "id_token", "token id_token")


def test_oidcc_discovery_endpoint_verification(provider: Provider) -> None:
    page = provider.ask("GET", f"{provider.issuer}.well-known/openid-configuration")
    assert (page.status, page.headers["content-type"].partition(";")[0]) == (200, "application/json")
    document = json.loads(page.body)
    assert all(document[name] for name in REQUIRED)
    assert document["issuer"] == provider.issuer
    assert "RS256" in document["id_token_signing_alg_values_supported"]
    assert document["subject_types_supported"] == ["public"]
    assert set(DYNAMIC_TYPES) <= set(document["response_types_supported"])
    assert "openid" in document["scopes_supported"]
    assert type(document["claims_parameter_supported"]) is bool
    assert {"authorization_code", "implicit"} <= set(document["grant_types_supported"])
    endpoints = [value for name, value in document.items() if name.endswith(("_endpoint", "_uri"))]
    # Tests allow plain HTTP (`INSECURE_HTTP`). The host is always checked.
    assert all(address.startswith(provider.issuer) for address in endpoints)
    keys = json.loads(provider.ask("GET", document["jwks_uri"]).body)["keys"]
    private = {"d", "p", "q", "dp", "dq", "qi", "k", "oth"}
    assert all((key["kty"], key["use"]) == ("RSA", "sig") and key["kid"] and not private & key.keys() for key in keys)
    assert len({key["kid"] for key in keys}) == len(keys)


def test_fapi2_security_profile_final_discovery_end_point_verification(provider: Provider, variant: BankVariant) -> None:
    document = provider.metadata
    assert document["issuer"] == provider.issuer
    assert document["pushed_authorization_request_endpoint"].startswith(provider.issuer)
    assert "code" in document["response_types_supported"]
    assert {"authorization_code", "refresh_token"} <= set(document["grant_types_supported"])
    assert "S256" in document["code_challenge_methods_supported"]
    assert document["authorization_response_iss_parameter_supported"] is True
    assert variant.authentication in document["token_endpoint_auth_methods_supported"]
    # FAPI 2.0, 5.4.1: PS256 is the only allowed RSA algorithm.
    assert "PS256" in document["token_endpoint_auth_signing_alg_values_supported"]
    if variant.is_signed:
        assert document["request_parameter_supported"] is True
        assert "PS256" in document["request_object_signing_alg_values_supported"]
    if variant.binding == "dpop":
        assert {"PS256", "ES256", "Ed25519"} <= set(document["dpop_signing_alg_values_supported"])
    else:
        assert document["tls_client_certificate_bound_access_tokens"] is True
        assert document["mtls_endpoint_aliases"]["token_endpoint"]
    assert "none" not in document["request_object_signing_alg_values_supported"]
    assert list(ALGORITHMS) == document["token_endpoint_auth_signing_alg_values_supported"]
