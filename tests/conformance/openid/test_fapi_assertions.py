"""FAPI 2.0: a client assertion must be for this issuer, from this client, signed as registered, current, and used once."""

from __future__ import annotations

import time
from typing import Any

from tests.authapi.browser import Page
from tests.conformance.openid.bank import Bank, handle_of, refusal


def pushed(bank: Bank, assertion: str) -> Page:
    return bank.push(beside={"client_assertion": assertion})


def is_refused(bank: Bank, **changes: Any) -> bool:
    """Report whether a changed assertion is refused both at a push and at the token endpoint."""
    answers = [pushed(bank, bank.assertion(**changes))]
    code = bank.code()
    answers.append(bank.exchange(code, client_assertion=bank.assertion(**changes)))
    assert bank.tokens(bank.exchange(code))["access_token"], "the refusal has used up the code"
    return [refusal(page) for page in answers] == ["invalid_client"] * 2


def test_fapi2_security_profile_final_ensure_signed_client_assertion_with_rs256_fails(bank: Bank) -> None:
    assert is_refused(bank, algorithm="RS256")


def test_fapi2_security_profile_final_ensure_client_assertion_in_token_endpoint(bank: Bank) -> None:
    code = bank.code()
    page = bank.exchange(code, client_assertion=None, client_assertion_type=None)
    assert refusal(page) == "invalid_client"
    assert refusal(bank.exchange(code, client_assertion=None)) in ("invalid_client", "invalid_request")


def test_fapi2_security_profile_final_ensure_client_assertion_with_exp_is_5_minutes_in_past_fails(bank: Bank) -> None:
    assert is_refused(bank, exp=int(time.time()) - 300)


def test_fapi2_security_profile_final_ensure_client_assertion_with_wrong_aud_fails(bank: Bank) -> None:
    assert is_refused(bank, aud="https://elsewhere.example.test/")


def test_fapi2_security_profile_final_ensure_client_assertion_with_no_sub_fails(bank: Bank) -> None:
    assert is_refused(bank, sub=None)


def test_fapi2_security_profile_final_ensure_invalid_client_assertions_fail(bank: Bank) -> None:
    now = int(time.time())
    invalid: list[dict[str, Any]] = [
        {"algorithm": "RS256"},
        {"key": "second"},
        {"iss": "another"},
        {"iss": None},
        {"aud": None},
        {"aud": "https://elsewhere.example.test/"},
        {"exp": None},
        {"exp": now - 300},
        {"nbf": now + 120},
        {"iat": now + 120},
        {"jti": None},
    ]
    for changes in invalid:
        assert refusal(pushed(bank, bank.assertion(**changes))) == "invalid_client", changes
    # The form names a different client than the assertion.
    assert refusal(pushed(bank, bank.assertion(sub="another"))) in ("invalid_client", "invalid_request")
    assert handle_of(bank.push())


def test_fapi2_security_profile_final_par_ensure_jwt_client_assertions_nbf_8_seconds_in_the_future_is_accepted(bank: Bank) -> None:
    now = int(time.time())
    assert handle_of(pushed(bank, bank.assertion(nbf=now + 8, iat=now + 8)))


def test_fapi2_security_profile_final_par_ensure_jwt_client_assertions_nbf_over_60_seconds_in_the_future_fails(bank: Bank) -> None:
    now = int(time.time())
    assert refusal(pushed(bank, bank.assertion(nbf=now + 65))) == "invalid_client"
    assert refusal(pushed(bank, bank.assertion(iat=now + 65))) == "invalid_client"


def test_fapi2_security_profile_final_par_test_array_as_audience_fails(bank: Bank) -> None:
    """FAPI 2.0, 5.3.3.2: the audience is the issuer as one string."""
    issuer = bank.provider.issuer
    assert refusal(pushed(bank, bank.assertion(aud=[issuer]))) == "invalid_client"
    assert refusal(pushed(bank, bank.assertion(aud=[issuer, bank.address("token_endpoint")]))) == "invalid_client"


def test_fapi2_security_profile_final_par_test_par_endpoint_url_as_audience_fails(bank: Bank) -> None:
    assert refusal(pushed(bank, bank.assertion(aud=bank.address("pushed_authorization_request_endpoint")))) == "invalid_client"


def test_fapi2_security_profile_final_par_test_token_endpoint_url_as_audience_fails(bank: Bank) -> None:
    assert refusal(pushed(bank, bank.assertion(aud=bank.address("token_endpoint")))) == "invalid_client"
