"""Contents of authorization responses and tokens for each response type."""

from __future__ import annotations

import json

import pytest
from joserfc import jwt
from joserfc.errors import BadSignatureError

from authapi.services.clients import create_client
from authapi.tokens.keys import rotate_keys
from identity.services.failures import Invalid
from tests.authapi.browser import query_of
from tests.conformance.openid.plans import Variant
from tests.conformance.openid.provider import Provider
from tests.conformance.openid.relying_party import RelyingParty, new_party, with_pkce


def test_oidcc_server(party: RelyingParty, provider: Provider, variant: Variant) -> None:
    first = party.logged_in()
    if first.access_token:
        assert party.profile(first.access_token)["sub"] == first.claims["sub"] == provider.user.user_id
    # A second client gets its own tokens in the existing session.
    second = new_party(provider, variant)
    second.browser = party.browser
    other = second.complete(second.authorize())
    assert other.claims["sub"] == first.claims["sub"]
    assert other.claims["aud"] != first.claims["aud"]


def test_oidcc_server_client_secret_post(provider: Provider, variant: Variant) -> None:
    party = new_party(provider, variant, method="client_secret_post")
    assert party.logged_in().tokens["access_token"]


def test_oidcc_idtoken_signature(party: RelyingParty, provider: Provider) -> None:
    token = party.logged_in().id_token
    header, claims, signature = token.split(".")
    swapped = signature[:-10] + ("A" if signature[-10] != "A" else "B") + signature[-9:]
    with pytest.raises(BadSignatureError):
        jwt.decode(f"{header}.{claims}.{swapped}", provider.keys, algorithms=["RS256"])


def test_oidcc_idtoken_rs256(provider: Provider) -> None:
    assert "RS256" in provider.metadata["id_token_signing_alg_values_supported"]
    # `verified` accepts no other algorithm.
    assert new_party(provider, algorithm="RS256").logged_in().claims["sub"] == provider.user.user_id


def test_oidcc_idtoken_unsigned(provider: Provider) -> None:
    """The suite requires unsigned id tokens if the metadata contains `none`. Our metadata does not, so clients get only signed id
    tokens."""
    assert "none" not in provider.metadata["id_token_signing_alg_values_supported"]
    with pytest.raises(Invalid):
        create_client(tenant_id=provider.tenant.pk, name="Unsigned", algorithm="none")


def test_oidcc_server_rotate_keys(provider: Provider) -> None:
    party = new_party(provider)
    old, published = party.logged_in().id_token, {key.kid for key in provider.keys.keys}
    rotate_keys(provider.tenant.pk)
    provider.changed()
    fresh = party.complete(party.authorize()).id_token
    assert {key.kid for key in provider.keys.keys} != published
    kids = [json.loads(_header(token))["kid"] for token in (old, fresh)]
    assert kids[0] != kids[1]
    # Tokens issued before the rotation can still be verified.
    jwt.decode(old, provider.keys, algorithms=["RS256"])


def _header(token: str) -> bytes:
    from base64 import urlsafe_b64decode

    part = token.partition(".")[0]
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def test_oidcc_response_type_missing(party: RelyingParty) -> None:
    page = party.authorize(response_type=None)
    party.sent.pop("response_mode", None)
    if "location" in page.headers:
        assert query_of(page.location)["error"][0] in ("invalid_request", "unsupported_response_type")
    else:
        assert page.fields()["error"] in ("invalid_request", "unsupported_response_type")


def test_oidcc_ensure_other_scope_order_succeeds(party: RelyingParty) -> None:
    outcome = party.logged_in(scope="email openid")
    assert party.told(outcome)["email"] == "ada@example.test"


def test_oidcc_alternate_happy_flow(party: RelyingParty) -> None:
    party.sent = party.request(scope="email openid")
    party.sent = dict(reversed(party.sent.items()))
    outcome = party.complete(party.log_in(party.browser.get("/authorize", party.sent)))
    assert party.told(outcome)["email"] == "ada@example.test"


def test_oidcc_ensure_request_without_nonce_fails(party: RelyingParty) -> None:
    assert party.error(party.authorize(nonce=None)) == "invalid_request"


def test_oidcc_ensure_request_without_nonce_succeeds_for_code_flow(party: RelyingParty) -> None:
    assert "nonce" not in party.logged_in(nonce=None).claims


def test_oidcc_ensure_post_request_succeeds(party: RelyingParty) -> None:
    party.sent = party.request()
    assert party.complete(party.log_in(party.browser.post("/authorize", party.sent))).claims["sub"]


def test_oidcc_ensure_request_with_valid_pkce_succeeds(party: RelyingParty) -> None:
    verifier, challenge = with_pkce()
    assert party.complete(party.log_in(party.authorize(**challenge)), code_verifier=verifier).tokens["access_token"]


def test_oidcc_ensure_request_with_unknown_parameter_succeeds(party: RelyingParty) -> None:
    assert party.logged_in(extra="foobar").claims["sub"]


def test_oidcc_ensure_request_with_acr_values_succeeds(party: RelyingParty, provider: Provider) -> None:
    # A provider may ignore the requested contexts (Core 1.0, 3.1.2.1), but an id token must not contain a context that is not offered.
    offered = provider.metadata["acr_values_supported"]
    assert party.logged_in(acr_values=f"unknown {offered[0]}").claims["acr"] == offered[0]
    assert party.complete(party.authorize(acr_values="unknown")).claims.get("acr") in (None, *offered)
