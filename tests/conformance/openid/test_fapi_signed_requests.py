"""FAPI 2.0 Message Signing: signed requests, and every defect that a signed request can have."""

from __future__ import annotations

import time
from typing import Any

from tests.authapi.browser import Page
from tests.conformance.openid.bank import Bank, handle_of, refusal
from tests.conformance.openid.test_request_objects import unsigned

HOUR = 3600
ERRORS = ("invalid_request", "invalid_request_object")


def pushed(bank: Bank, **changes: Any) -> Page:
    """Push a signed request. `changes` overrides its claims; None removes a claim."""
    return bank.push_fields({"request": bank.request_object(**changes)})


def is_refused(bank: Bank, **changes: Any) -> bool:
    assert handle_of(pushed(bank)), "the unchanged request was refused"
    return refusal(pushed(bank, **changes)) in ERRORS


def test_fapi2_security_profile_final_ensure_request_object_with_multiple_aud_succeeds(bank: Bank) -> None:
    """FAPI 2.0 Message Signing, 5.3.1: the audience may be an array that contains the issuer."""
    assert handle_of(pushed(bank, aud=["https://elsewhere.example.test/", bank.provider.issuer]))
    assert is_refused(bank, aud=["https://elsewhere.example.test/"])


def test_fapi2_security_profile_final_ensure_request_object_with_nbf_8_seconds_in_the_future_is_accepted(bank: Bank) -> None:
    assert handle_of(pushed(bank, nbf=int(time.time()) + 8))


def test_fapi2_security_profile_final_ensure_request_object_without_exp_fails(bank: Bank) -> None:
    assert is_refused(bank, exp=None)


def test_fapi2_security_profile_final_ensure_request_object_without_nbf_fails(bank: Bank) -> None:
    assert is_refused(bank, nbf=None)


def test_fapi2_security_profile_final_ensure_expired_request_object_fails(bank: Bank) -> None:
    assert is_refused(bank, exp=int(time.time()) - 300)


def test_fapi2_security_profile_final_ensure_request_object_with_bad_aud_fails(bank: Bank) -> None:
    assert is_refused(bank, aud="https://elsewhere.example.test/")


def test_fapi2_security_profile_final_ensure_request_object_with_exp_over_60_fails(bank: Bank) -> None:
    assert is_refused(bank, exp=int(time.time()) + HOUR + 600)


def test_fapi2_security_profile_final_ensure_request_object_with_nbf_over_60_fails(bank: Bank) -> None:
    assert is_refused(bank, nbf=int(time.time()) - HOUR - 600)


def test_fapi2_security_profile_final_ensure_signed_request_object_with_rs256_fails(bank: Bank) -> None:
    assert is_refused(bank, algorithm="RS256")


def test_fapi2_security_profile_final_ensure_request_object_signature_algorithm_is_not_none(bank: Bank) -> None:
    claims = {"iss": bank.client_id, "aud": bank.provider.issuer, "client_id": bank.client_id, "exp": int(time.time()) + 60}
    assert refusal(bank.push_fields({"request": unsigned({**claims, **bank.request()})})) in ERRORS


def test_fapi2_security_profile_final_ensure_request_object_with_invalid_signature_fails(bank: Bank) -> None:
    good = bank.request_object()
    assert refusal(bank.push_fields({"request": good[:-8] + ("A" * 8 if good[-8:] != "A" * 8 else "B" * 8)})) in ERRORS


def test_fapi2_security_profile_final_ensure_matching_key_in_authorization_request(bank: Bank) -> None:
    assert is_refused(bank, key="second")


def test_fapi2_security_profile_final_ensure_unsigned_request_at_par_endpoint_fails(bank: Bank) -> None:
    assert refusal(bank.push_fields(bank.request())) in ERRORS


def test_fapi2_security_profile_final_par_authorization_request_containing_request_uri(bank: Bank) -> None:
    """A pushed signed request must not name another pushed request (RFC 9126, 2.1)."""
    assert is_refused(bank, request_uri=bank.handle())
