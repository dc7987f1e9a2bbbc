"""The contents of access tokens: the keys by which a token is revoked, dialects, and the headers and claims that are accepted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from authapi.tokens.asked import DETAILS, USERINFO_CLAIMS
from authapi.tokens.claims import (
    VERSION_CLAIM,
    Malformed,
    TokenOrder,
    lineage_key,
    new_jti,
    read_claims,
    read_key_id,
    related_jti,
    revocation_keys,
    token_claims,
    token_kind,
)
from tests.authapi.forging import encoded

LINEAGE = UUID("00000000-0000-4000-8000-0000000000ff")
ORDER = TokenOrder(
    issuer="http://a.example.test/",
    subject="auth|ada",
    audience="urn:orders",
    client_id="shop",
    client_version=2,
    scopes=("read", "write"),
    grant="password",
    jti="some",
    seconds=60,
    dialect="access_token",
)
PAYLOAD = token_claims(ORDER, now=1000)


def token_with(header: Any) -> str:
    return f"{encoded(header)}.payload.signature"


# --- Keys that revoke a token ---------------------------------------------------------------------------------------------


def test_a_user_token_can_be_revoked_by_its_jti_or_by_its_lineage() -> None:
    jti = new_jti(LINEAGE)
    assert lineage_key(LINEAGE) == "AAAAAAAAQACAAAAAAAAA_w"
    assert revocation_keys(jti) == (jti, lineage_key(LINEAGE))
    assert new_jti(LINEAGE) != jti


def test_a_machine_token_can_be_revoked_only_by_its_jti() -> None:
    jti = new_jti()
    assert revocation_keys(jti) == (jti,)


def test_a_derived_token_has_the_lineage_of_its_original_token() -> None:
    jti = new_jti(LINEAGE)
    assert revocation_keys(related_jti(jti))[1] == lineage_key(LINEAGE)
    assert related_jti(jti) != jti
    assert len(revocation_keys(related_jti(new_jti()))) == 1


# --- Dialects ---------------------------------------------------------------------------------------------------------


def test_a_token_without_an_actor_has_no_act_claim() -> None:
    assert "act" not in PAYLOAD
    assert token_claims(replace(ORDER, actor={"sub": "a"}), now=1000)["act"] == {"sub": "a"}


@pytest.mark.parametrize(("permissions", "listed"), [(None, ["read", "write"]), ((), []), (("read",), ["read"])])
def test_a_dialect_with_permissions_lists_the_permissions_or_else_the_scopes(
    permissions: tuple[str, ...] | None, listed: list[str]
) -> None:
    order = replace(ORDER, dialect="access_token_authz", permissions=permissions)
    assert token_claims(order, now=1000)["permissions"] == listed
    assert "permissions" not in token_claims(replace(order, dialect="access_token"), now=1000)


def test_each_dialect_writes_the_client_and_the_type_of_the_token() -> None:
    assert (PAYLOAD["azp"], PAYLOAD["gty"], token_kind(ORDER)) == ("shop", "password", "JWT")
    assert "gty" not in token_claims(replace(ORDER, grant=""), now=1000)
    standard = replace(ORDER, dialect="rfc9068_profile_authz")
    assert (token_claims(standard, now=1000)["client_id"], token_kind(standard)) == ("shop", "at+jwt")


# --- Headers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["JWT", "at+jwt", "application/at+jwt", "AT+JWT"])
@pytest.mark.parametrize("padding", ["", "x", "xx", "xxx"])
def test_each_token_type_and_each_length_of_the_key_id_is_accepted(kind: str, padding: str) -> None:
    assert read_key_id(token_with({"alg": "RS256", "typ": kind, "kid": f"k{padding}"})) == f"k{padding}"


@pytest.mark.parametrize(
    "token",
    [
        token_with({"alg": "RS256", "typ": "", "kid": "k"}),
        token_with({"alg": "RS256", "typ": "id+jwt", "kid": "k"}),
        token_with({"alg": "RS256", "kid": "k"}),
        token_with({"alg": "HS256", "typ": "JWT", "kid": "k"}),
        token_with({"alg": "RS256", "typ": "JWT"}),
        token_with(["RS256"]),
        token_with({"alg": "RS256", "typ": "JWT", "kid": "k"}) + "é",
        token_with({"alg": "RS256", "typ": "JWT", "kid": "k"}) + ".",
    ],
)
def test_a_header_that_this_service_never_writes_is_malformed(token: str) -> None:
    with pytest.raises(Malformed, match=r"^This service cannot have issued the token\.$"):
        read_key_id(token)


# --- Claims -----------------------------------------------------------------------------------------------------------


def test_the_claims_of_each_dialect_are_read_back() -> None:
    for dialect in ("access_token", "rfc9068_profile"):
        claims = read_claims(token_claims(replace(ORDER, dialect=dialect), now=1000), key_id="k")
        assert (claims.client_id, claims.client_version, claims.audiences) == ("shop", 2, ("urn:orders",))
        assert (claims.issued_at, claims.expires_at, claims.scopes) == (1000, 1060, frozenset({"read", "write"}))
        assert (claims.userinfo_claims, claims.details, claims.actor) == ((), (), None)


def test_further_claims_are_read_back() -> None:
    details = [{"type": "payment"}]
    claims = read_claims(PAYLOAD | {USERINFO_CLAIMS: ["nickname"], DETAILS: details, "org_id": "org_a"}, key_id="k")
    assert (claims.userinfo_claims, claims.details, claims.organization_id) == (("nickname",), tuple(details), "org_a")


@pytest.mark.parametrize(
    "wrong",
    [
        {USERINFO_CLAIMS: "nickname"},
        {USERINFO_CLAIMS: [1]},
        {USERINFO_CLAIMS: {"nickname": 1}},
        {DETAILS: {"type": "payment"}},
        {DETAILS: ["payment"]},
        {"act": "a"},
        {"cnf": "a"},
        {"org_id": 1},
        {"iat": True},
        {"iat": "1000"},
        {VERSION_CLAIM: None},
    ],
)
def test_a_claim_of_a_wrong_type_is_malformed(wrong: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        read_claims(PAYLOAD | wrong, key_id="k")
