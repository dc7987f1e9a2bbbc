"""Forged and malformed tokens: only our own keys, algorithms and claims are accepted."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from authapi.models import SigningKey
from authapi.tokens.verifying import ClientNotGlobal, InvalidSignature, InvalidToken, TokenExpired, TokenRefused, verify_access_token
from identity.models import Tenant
from identity.services.tenants import create_tenant
from tests.authapi.forging import decoded, encoded, signed
from tests.factories.authapi import access_token, granted_client, host_of


@pytest.mark.parametrize(
    "token",
    ["", "x", "a.b", "a.b.c.d", "..", "é.b.c", "e30.e30.e30", "a" * 20_000, f"{encoded([1])}.e30.e30", f"{encoded(b'{')}.e30.e30"],
)
def test_a_malformed_token_is_invalid(tenant: Tenant, token: str) -> None:
    with pytest.raises(InvalidToken, match=r"^Invalid token\.$"):
        verify_access_token(token, host=host_of(tenant))


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "HS256"},
        {"alg": "PS512"},
        {"alg": "RS384"},
        {"alg": ["RS256"]},
        {"typ": None},
        {"typ": "id+jwt"},
        {"kid": None},
        {"kid": 7},
        {"jku": "https://attacker.example.test/keys"},
        {"x5u": "https://attacker.example.test/certificate"},
        {"jwk": {"kty": "RSA"}},
        {"x5c": ["AA=="]},
        {"crit": ["exp"]},
        {"zip": "DEF"},
        {"b64": False},
    ],
)
def test_a_token_with_a_header_that_this_service_never_writes_is_invalid(tenant: Tenant, header: dict[str, Any]) -> None:
    token = signed(tenant, access_token(tenant, granted_client(tenant)), header=header)
    with pytest.raises(InvalidToken):
        verify_access_token(token, host=host_of(tenant))


def test_an_unsigned_token_is_invalid(tenant: Tenant) -> None:
    header, claims = decoded(access_token(tenant, granted_client(tenant)))
    with pytest.raises(InvalidToken):
        verify_access_token(f"{encoded(header | {'alg': 'none'})}.{encoded(claims)}.", host=host_of(tenant))


def test_the_public_key_is_not_accepted_as_a_shared_secret(tenant: Tenant) -> None:
    header, claims = decoded(access_token(tenant, granted_client(tenant)))
    pem = RSAKey.import_key(SigningKey.objects.of(tenant.pk).get(state="current").public_jwk).as_pem(private=False)
    for algorithm, refusal in (("HS256", InvalidToken), ("RS256", InvalidSignature)):
        text = f"{encoded(header | {'alg': algorithm})}.{encoded(claims)}"
        forged = f"{text}.{encoded(hmac.digest(pem, text.encode(), 'sha256'))}"
        with pytest.raises(refusal):
            verify_access_token(forged, host=host_of(tenant))


def test_a_changed_payload_invalidates_the_signature(tenant: Tenant) -> None:
    header, payload, signature = access_token(tenant, granted_client(tenant)).split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    forged = f"{header}.{encoded(claims | {'scope': 'delete:users'})}.{signature}"
    with pytest.raises(InvalidSignature, match=r"^Invalid signature received for JSON Web Token validation\.$"):
        verify_access_token(forged, host=host_of(tenant))


def test_a_token_of_another_tenant_is_invalid(tenant: Tenant) -> None:
    other = create_tenant(tenant_id=f"{tenant.pk}-b", name="b", host=f"{tenant.pk}-b.example.test")
    foreign = access_token(other, granted_client(other))
    with pytest.raises(InvalidSignature):
        verify_access_token(foreign, host=host_of(tenant))


@pytest.mark.parametrize(
    ("claims", "refusal"),
    [
        ({"iss": "http://elsewhere.example.test/"}, InvalidToken),
        ({"iss": None}, InvalidToken),
        ({"sub": None}, InvalidToken),
        ({"aud": None}, InvalidToken),
        ({"aud": [1]}, InvalidToken),
        ({"jti": None}, InvalidToken),
        ({"azp": None}, InvalidToken),
        ({"azp": "nobody"}, InvalidToken),
        ({"scope": ["read:events"]}, InvalidToken),
        ({"exp": None}, InvalidToken),
        ({"exp": "tomorrow"}, InvalidToken),
        ({"exp": True}, InvalidToken),
        ({"iat": None}, InvalidToken),
        ({"client_version": None}, InvalidToken),
        ({"client_version": 1}, InvalidToken),
        ({"client_version": 3}, InvalidToken),
        ({"cnf": {"x5t#S256": "A" * 43}}, InvalidToken),
        ({"cnf": "A"}, InvalidToken),
        ({"exp": 1}, TokenExpired),
        ({"iat": 4_000_000_000}, TokenExpired),
        ({"aud": "urn:orders"}, ClientNotGlobal),
        ({"aud": "http://elsewhere.example.test/api/v2/"}, ClientNotGlobal),
        ({"aud": []}, ClientNotGlobal),
        ({"sub": "auth|someone"}, ClientNotGlobal),
    ],
)
def test_a_token_with_a_valid_signature_and_an_invalid_claim_is_invalid(
    tenant: Tenant, claims: dict[str, Any], refusal: type[TokenRefused]
) -> None:
    token = signed(tenant, access_token(tenant, granted_client(tenant)), claims=claims)
    with pytest.raises(refusal) as refused:
        verify_access_token(token, host=host_of(tenant))
    assert type(refused.value) is refusal
    assert refused.value.status == 401
    assert refused.value.message == ("Client is not global." if refusal is ClientNotGlobal else "Invalid token.")
