"""FAPI 2.0 with DPoP: the allowed formats of a proof. Codes and tokens are useless without the key."""

from __future__ import annotations

import time
from typing import Any

from tests.authapi.browser import Page
from tests.authapi.proving import Prover
from tests.conformance.openid.bank import Bank, handle_of, refusal


def proven_flow(bank: Bank, **claims: Any) -> int:
    """Push a request, exchange its code and call the resource, with proofs that have these claims; return the status of the resource."""
    address = bank.address("pushed_authorization_request_endpoint")
    handle = handle_of(bank.push(headers=bank.connection("POST", address, **claims)))
    code = bank.answer(bank.log_in(bank.visit(handle)))["code"]
    token = bank.tokens(bank.exchange(code, proof=claims))["access_token"]
    at = bank.address("userinfo_endpoint")
    return bank.resource(token, headers=bank.connection("GET", at, token=token, **claims)).status


def without_proof(bank: Bank) -> dict[str, str]:
    """Return the headers of the connection without the proof, so that a push does not bind the code to a key."""
    shown = bank.connection("POST", bank.address("pushed_authorization_request_endpoint"))
    return {name: value for name, value in shown.items() if name != "DPoP"}


def test_fapi2_security_profile_final_check_dpop_proof_nbf_exp(bank: Bank) -> None:
    now = int(time.time())
    assert proven_flow(bank, nbf=now - 5, exp=now + 60) == 200


def test_fapi2_security_profile_final_ensure_dpopproof_with_iat_10seconds_before_succeeds(bank: Bank) -> None:
    assert proven_flow(bank, iat=int(time.time()) - 10) == 200


def test_fapi2_security_profile_final_ensure_dpopproof_with_iat_10seconds_after_succeeds(bank: Bank) -> None:
    assert proven_flow(bank, iat=int(time.time()) + 10) == 200


def test_fapi2_security_profile_final_ensure_mismatched_dpop_jkt_fails(bank: Bank) -> None:
    assert refusal(bank.push(dpop_jkt=Prover().thumbprint)) in ("invalid_dpop_proof", "invalid_request")


def test_fapi2_security_profile_final_ensure_token_endpoint_fails_with_mismatched_dpop_proof_jkt(bank: Bank) -> None:
    code = bank.code()
    assert refusal(bank.exchange(code, proof={"prover": Prover()})) in ("invalid_grant", "invalid_dpop_proof")


def test_fapi2_security_profile_final_ensure_token_endpoint_fails_with_mismatched_dpop_jkt(bank: Bank) -> None:
    handle = handle_of(bank.push(headers=without_proof(bank), dpop_jkt=bank.prover.thumbprint))
    code = bank.answer(bank.log_in(bank.visit(handle)))["code"]
    assert refusal(bank.exchange(code, proof={"prover": Prover()})) in ("invalid_grant", "invalid_dpop_proof")


def test_fapi2_security_profile_final_ensure_dpopproof_at_par_endpoint_binding_success(bank: Bank) -> None:
    assert bank.logged_in()["token_type"].lower() == "dpop"


def test_fapi2_security_profile_final_ensure_dpop_auth_code_binding_success(bank: Bank) -> None:
    handle = handle_of(bank.push(headers=without_proof(bank), dpop_jkt=bank.prover.thumbprint))
    code = bank.answer(bank.log_in(bank.visit(handle)))["code"]
    assert bank.tokens(bank.exchange(code))["access_token"]
    # Both parameters name the same key.
    assert bank.logged_in(dpop_jkt=bank.prover.thumbprint)["access_token"]


def test_fapi2_security_profile_final_dpop_negative_tests(bank: Bank) -> None:
    now, token = int(time.time()), bank.logged_in()["access_token"]
    address = bank.address("userinfo_endpoint")

    def asked(proof: str) -> Page:
        shown = {**bank.connection("GET", address, token=token), "DPoP": proof}
        return bank.resource(token, headers=shown)

    def made(**changes: Any) -> str:
        return bank.prover.proof("GET", address, token=token, **changes)

    refused = {
        "another key": Prover().proof("GET", address, token=token),
        "no jti": made(jti=None),
        "no htm": made(htm=None),
        "no htu": made(htu=None),
        "no iat": made(iat=None),
        "no ath": made(ath=None),
        "another token": made(ath="x" * 43),
        "another method": made(htm="POST"),
        "another address": made(htu=f"{address}/elsewhere"),
        "an old proof": made(iat=now - 3600),
        "a proof from the future": made(iat=now + 3600),
        "another type": made(header={"typ": "JWT"}),
        "no type": made(header={"typ": None}),
        "no key": made(header={"jwk": None}),
        "no algorithm": made(header={"alg": "none"}),
        "a broken signature": made()[:-6] + "AAAAAA",
    }
    for name, proof in refused.items():
        assert asked(proof).status == 401, name
    used = made()
    assert [asked(used).status, asked(used).status] == [200, 401]
    # The client sends the token without any proof: first as a DPoP token, then as a plain bearer token.
    for scheme in ("DPoP", "Bearer"):
        assert bank.resource(token, scheme=scheme, headers={}).status == 401
