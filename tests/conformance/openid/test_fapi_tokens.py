"""FAPI 2.0 at the token endpoint. A code or refresh token is valid only for its own client, and a client without its key gets no token."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import time_machine

from tests.conformance.openid.bank import Bank, new_bank, refusal
from tests.conformance.openid.plans import BankVariant
from tests.conformance.openid.provider import Provider

OFFLINE = "openid offline_access"


def test_fapi2_security_profile_final_access_token_type_header_case_sensitivity(bank: Bank) -> None:
    token = bank.logged_in()["access_token"]
    named = "DPoP" if bank.variant.binding == "dpop" else "Bearer"
    for scheme in (named.lower(), named.upper()):
        assert bank.resource(token, scheme=scheme).status == 200


def test_fapi2_security_profile_final_ensure_client_id_in_token_endpoint(bank: Bank, provider: Provider, variant: BankVariant) -> None:
    other = new_bank(provider, variant, key="second")
    page = bank.exchange(bank.code(), client_id=other.client_id)
    assert refusal(page) in ("invalid_client", "invalid_request", "invalid_grant")


def test_fapi2_security_profile_final_ensure_holder_of_key_required(bank: Bank) -> None:
    """The test plan requires these errors for a missing certificate. RFC 9449, 5 defines a different error for a missing proof."""
    errors = ("invalid_request", "invalid_client", "invalid_grant", "invalid_dpop_proof", "use_dpop_nonce")
    code = bank.code()
    assert refusal(bank.exchange(code, headers={})) in errors
    assert bank.tokens(bank.exchange(code))["access_token"]


def test_fapi2_security_profile_final_ensure_authorization_code_is_bound_to_client(
    bank: Bank, provider: Provider, variant: BankVariant
) -> None:
    other, code = new_bank(provider, variant, key="second"), bank.code()
    other.verifier = bank.verifier
    assert refusal(other.exchange(code)) == "invalid_grant"
    # The attempt of another client has not used up the code.
    assert bank.tokens(bank.exchange(code))["access_token"]


def test_fapi2_security_profile_final_attempt_reuse_authorization_code_after_one_second(bank: Bank) -> None:
    with time_machine.travel(datetime.now(UTC)) as clock:
        code = bank.code()
        token = bank.tokens(bank.exchange(code))["access_token"]
        clock.shift(timedelta(seconds=1))
        assert refusal(bank.exchange(code)) == "invalid_grant"
        assert bank.resource(token).status == 401


def test_fapi2_security_profile_final_ensure_token_endpoint_fails_with_expired_auth_code(bank: Bank) -> None:
    """FAPI 2.0, 5.3.2.1: a code expires after at most a minute."""
    with time_machine.travel(datetime.now(UTC)) as clock:
        code = bank.code()
        clock.shift(timedelta(seconds=61))
        assert refusal(bank.exchange(code)) == "invalid_grant"


def test_fapi2_security_profile_final_ensure_pkce_code_verifier_required(bank: Bank) -> None:
    assert refusal(bank.exchange(bank.code(), code_verifier=None)) in ("invalid_grant", "invalid_request")


def test_fapi2_security_profile_final_incorrect_pkce_code_verifier_rejected(bank: Bank) -> None:
    assert refusal(bank.exchange(bank.code(), code_verifier="x" * 43)) == "invalid_grant"


def test_fapi2_security_profile_final_refresh_token(bank: Bank, provider: Provider, variant: BankVariant) -> None:
    first = bank.logged_in(scope=OFFLINE)
    token = first["refresh_token"]
    other = new_bank(provider, variant, key="second")
    assert refusal(other.refresh(token)) == "invalid_grant"
    # The first request has no client authentication. The second request has no proof of the key that binds the tokens.
    bare = {"grant_type": "refresh_token", "refresh_token": token, "client_id": bank.client_id}
    assert refusal(provider.post(bank.address("token_endpoint"), bare)) == "invalid_client"
    assert refusal(bank.refresh(token, headers={})) in ("invalid_request", "invalid_dpop_proof", "invalid_client", "invalid_grant")
    fresh = json.loads(bank.refresh(token).body)
    assert fresh["access_token"] != first["access_token"]
    assert bank.resource(fresh["access_token"]).status == 200
    # FAPI 2.0, 5.3.2.1: refresh tokens are not rotated.
    assert fresh.get("refresh_token", token) == token
    assert bank.refresh(token).status == 200
