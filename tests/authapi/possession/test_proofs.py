"""Parsing of DPoP proofs: accepted keys, the request that a proof must match, and changes by an attacker."""

from __future__ import annotations

import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from authapi.possession.proofs import ALGORITHMS, InvalidProof, Proof, Target, is_thumbprint, read_proof, thumbprint_of
from tests.authapi.proving import Prover, encoded, new_key, part

ADDRESS = "https://as.example.test/oauth/token"
TARGET = Target("POST", "https", ("as.example.test", "mtls.as.example.test"), "/oauth/token")


def read(text: str, target: Target = TARGET) -> Proof:
    return read_proof(text, target, now=time.time())


@pytest.fixture(scope="module")
def prover() -> Prover:
    return Prover()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_proof_with_each_algorithm_is_accepted(algorithm: str) -> None:
    prover = Prover(algorithm)
    found = read(prover.proof("POST", ADDRESS, jti="j", nonce="n"))
    assert (found.thumbprint, found.jti, found.nonce) == (prover.thumbprint, "j", "n")
    assert is_thumbprint(found.thumbprint)


@pytest.mark.parametrize("algorithm", ["RS256", "PS256"])
def test_an_exponent_that_makes_the_check_slow_is_refused(algorithm: str) -> None:
    prover = Prover(algorithm)
    key = {**prover.jwk, "e": encoded(b"\x01" + bytes(249) + b"\x01")}
    with pytest.raises(InvalidProof, match="exponent"):
        read(prover.proof("POST", ADDRESS, header={"jwk": key}))


def test_the_thumbprint_follows_rfc_7638() -> None:
    # RFC 9449, 4.2 and 6.1.
    key = {
        "kty": "EC",
        "crv": "P-256",
        "x": "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
        "y": "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
    }
    assert thumbprint_of(key) == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"htm": "GET"}, "htm"),
        ({"htm": None}, "htm"),
        ({"htu": "https://as.example.test/oauth/par"}, "htu"),
        ({"htu": "https://evil.test/oauth/token"}, "htu"),
        ({"htu": "http://as.example.test/oauth/token"}, "htu"),
        ({"htu": "https://as.example.test:8443/oauth/token"}, "htu"),
        ({"htu": "https://as.example.test@evil.test/oauth/token"}, "htu"),
        ({"htu": "https://user@as.example.test/oauth/token"}, "htu"),
        ({"htu": "https://as.example.test/oauth/token/"}, "htu"),
        ({"htu": "https://[as.example.test/oauth/token"}, "htu"),
        ({"htu": 7}, "htu"),
        ({"htu": None}, "htu"),
        ({"jti": None}, "jti"),
        ({"jti": ""}, "jti"),
        ({"jti": "j" * 257}, "jti"),
        ({"jti": 7}, "jti"),
        ({"iat": None}, "iat"),
        ({"iat": "now"}, "iat"),
        ({"iat": True}, "iat"),
        ({"iat": 1}, "iat"),
        ({"iat": 9_999_999_999}, "iat"),
        ({"nonce": 7}, "nonce"),
        ({"nonce": "n" * 257}, "nonce"),
    ],
)
def test_the_refusal_names_an_invalid_claim(prover: Prover, changes: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidProof, match=text):
        read(prover.proof("POST", ADDRESS, **changes))


@pytest.mark.parametrize(
    "address",
    [
        "HTTPS://AS.example.test/oauth/token",
        "https://as.example.test:443/oauth/token",
        "https://as.example.test/oauth/token?a=b#c",
        "https://as.example.test/oauth/%74oken",
        "https://mtls.as.example.test/oauth/token",
    ],
)
def test_the_url_of_a_proof_is_compared_after_normalization(prover: Prover, address: str) -> None:
    assert read(prover.proof("POST", address)).thumbprint == prover.thumbprint


def test_a_clock_may_differ_by_more_than_a_minute_only_with_a_nonce(prover: Prover) -> None:
    now = int(time.time())
    for seconds in (-55, 55):
        assert read(prover.proof("POST", ADDRESS, iat=now + seconds)).thumbprint == prover.thumbprint
        with pytest.raises(InvalidProof, match="clock"):
            read(prover.proof("POST", ADDRESS, iat=now + 2 * seconds))
        assert read(prover.proof("POST", ADDRESS, iat=now + 10 * seconds, nonce="n")).nonce == "n"
    with pytest.raises(InvalidProof, match="clock"):
        read(prover.proof("POST", ADDRESS, iat=now - 700, nonce="n"))


def test_a_proof_at_a_resource_is_valid_for_one_token(prover: Prover) -> None:
    target = Target("GET", "https", ("as.example.test",), "/userinfo", "the-token")
    address = "https://as.example.test/userinfo"
    assert read(prover.proof("GET", address, token="the-token"), target).thumbprint == prover.thumbprint
    for proof in (prover.proof("GET", address), prover.proof("GET", address, token="another"), prover.proof("GET", address, ath="é")):
        with pytest.raises(InvalidProof, match="ath"):
            read(proof, target)


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ({"typ": "jwt"}, "typ"),
        ({"typ": None}, "typ"),
        ({"typ": "DPoP+JWT"}, "typ"),
        ({"alg": "none"}, "alg"),
        ({"alg": "HS256"}, "alg"),
        ({"alg": "RS256"}, "match its alg"),
        ({"alg": ["ES256"]}, "alg"),
        ({"jwk": None}, "public key"),
        ({"jwk": "text"}, "public key"),
        ({"jwk": {"kty": "oct", "k": "c2VjcmV0"}}, "public key"),
        ({"jwk": {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}}, "cannot be read|does not hold"),
        ({"jwk": {"kty": "EC", "crv": "P-256", "x": 7, "y": 7}}, "match its alg"),
        ({"jwk": {"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"}}, "match its alg"),
        ({"crit": ["b64"], "b64": False}, "header"),
        ({"jku": "https://evil.test/keys"}, "header"),
        ({"x5u": "https://evil.test/chain"}, "header"),
    ],
)
def test_an_invalid_header_is_refused(prover: Prover, header: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidProof, match=text):
        read(prover.proof("POST", ADDRESS, header=header))


def test_a_private_key_in_the_header_is_refused(prover: Prover) -> None:
    with pytest.raises(InvalidProof, match="public key"):
        read(prover.proof("POST", ADDRESS, header={"jwk": {**prover.jwk, "d": "AQAB"}}))


def test_a_signature_of_another_key_is_refused(prover: Prover) -> None:
    with pytest.raises(InvalidProof, match="signature"):
        read(prover.proof("POST", ADDRESS, header={"jwk": Prover().jwk}))


def test_a_changed_payload_invalidates_the_signature(prover: Prover) -> None:
    header, _, signature = prover.proof("POST", ADDRESS).split(".")
    payload = part({"htm": "POST", "htu": ADDRESS, "iat": int(time.time()), "jti": "j"})
    with pytest.raises(InvalidProof, match="signature"):
        read(f"{header}.{payload}.{signature}")


def test_a_short_key_and_a_key_on_another_curve_are_refused() -> None:
    good = Prover("RS256")
    with pytest.raises(InvalidProof, match="2048"):
        read(good.proof("POST", ADDRESS, header={"jwk": {**good.jwk, "n": good.jwk["n"][:170]}}))
    other = Prover("ES256", new_key())
    curve = ec.generate_private_key(ec.SECP256K1()).public_key().public_numbers()
    jwk = {"kty": "EC", "crv": "secp256k1", "x": encoded(curve.x.to_bytes(32, "big")), "y": encoded(curve.y.to_bytes(32, "big"))}
    with pytest.raises(InvalidProof):
        read(other.proof("POST", ADDRESS, header={"jwk": jwk}))


@pytest.mark.parametrize("text", ["", "x", "a.b", "a.b.c.d", "..", "e30.e30.", "é.é.é", "a" * 7000 + "..", "{},{},{}", "W10.W10.W10"])
def test_a_malformed_jwt_is_refused(text: str) -> None:
    with pytest.raises(InvalidProof):
        read(text)


def test_two_proofs_in_one_header_line_are_refused(prover: Prover) -> None:
    with pytest.raises(InvalidProof):
        read(f"{prover.proof('POST', ADDRESS)}, {prover.proof('POST', ADDRESS)}")
