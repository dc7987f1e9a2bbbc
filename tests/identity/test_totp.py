"""One-time passwords of authenticator apps: the vectors of RFC 6238, the accepted steps, and the refusal of used codes."""

from __future__ import annotations

import base64
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from foundation.secrets import totp

# RFC 6238, appendix B: the secret of the rows for SHA-1, and for each time (in seconds) the last six digits of the code.
SECRET = base64.b32encode(b"12345678901234567890").decode()
VECTORS = {59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130"}


@pytest.mark.parametrize(("moment", "code"), VECTORS.items())
def test_codes_match_the_vectors_of_rfc_6238(moment: int, code: str) -> None:
    assert totp.code_of(SECRET, totp.step_at(moment)) == code


def test_a_code_is_accepted_only_for_its_step_and_the_two_adjacent_steps() -> None:
    moment = 1_900_000_000
    step = totp.step_at(moment)
    accepted = {away: totp.accepted_step(SECRET, totp.code_of(SECRET, step + away), moment=moment, last_step=0) for away in range(-2, 3)}

    assert accepted == {-2: None, -1: step - 1, 0: step, 1: step + 1, 2: None}


def test_codes_of_a_used_step_and_of_older_steps_are_refused() -> None:
    moment = 1_900_000_000
    step = totp.step_at(moment)
    for taken, away in [(step, 0), (step, -1), (step + 1, 0), (step + 1, 1)]:
        assert totp.accepted_step(SECRET, totp.code_of(SECRET, step + away), moment=moment, last_step=taken) is None
    assert totp.accepted_step(SECRET, totp.code_of(SECRET, step + 1), moment=moment, last_step=step) == step + 1


@pytest.mark.parametrize("code", ["", "28708", "2870821", "287O82", "٢٨٧٠٨٢", "abcdef"])
def test_an_invalid_code_is_not_accepted(code: str) -> None:
    assert totp.accepted_step(SECRET, code, moment=59, last_step=0) is None


def test_secrets_are_random_and_long() -> None:
    made = {totp.new_secret() for _ in range(20)}

    assert len(made) == 20
    assert all(len(base64.b32decode(secret)) == 20 for secret in made)


def test_the_uri_of_the_qr_code_contains_the_issuer_and_account_and_secret() -> None:
    address = urlsplit(totp.enrolment_address(SECRET, issuer="Identity a&b", account="ada+x@example.test"))
    query = parse_qs(address.query)

    assert (address.scheme, address.netloc, unquote(address.path)) == ("otpauth", "totp", "/Identity a&b:ada+x@example.test")
    assert (query["secret"], query["issuer"], query["digits"], query["period"]) == ([SECRET], ["Identity a&b"], ["6"], ["30"])
