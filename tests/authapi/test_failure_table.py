"""The table of failures, compared with the contract row by row. Clients compare some of the error texts exactly."""

from __future__ import annotations

from typing import Any

import pytest

from authapi.accounts.attempts import Refusal
from authapi.failures import Case, RequestRefused
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.failures.passwordless import PasswordlessCase
from authapi.failures.requests import RequestCase
from authapi.grants.password import _CASES

# Contract, 2.3. If the answer of the upstream differs from its documentation, the row has the actual answer. None means that the text
# varies.
ROWS: dict[Case, tuple[int, str, str | None]] = {
    OAuthCase.WRONG_CLIENT_AUTHENTICATION: (401, "access_denied", "Unauthorized"),
    OAuthCase.MISSING_CLIENT_AUTHENTICATION: (401, "invalid_client", None),
    OAuthCase.INVALID_CODE: (403, "invalid_grant", "Invalid authorization code"),
    OAuthCase.WRONG_CODE_VERIFIER: (403, "invalid_grant", "Failed to verify code verifier"),
    OAuthCase.INVALID_REFRESH_TOKEN: (403, "invalid_grant", "Unknown or invalid refresh token."),
    LoginCase.WRONG_CREDENTIALS: (403, "invalid_grant", "Wrong email or password."),
    OAuthCase.GRANT_NOT_ALLOWED: (403, "unauthorized_client", "Grant type 'g' not allowed for the client."),
    OAuthCase.UNKNOWN_AUDIENCE: (403, "access_denied", "Service not enabled within domain: urn:a"),
    OAuthCase.NO_CLIENT_GRANT: (403, "access_denied", None),
    OAuthCase.AUDIENCE_REQUIRED: (403, "access_denied", "Non-global clients are not allowed access to APIv1"),
    LoginCase.USER_BLOCKED: (403, "unauthorized", "user is blocked"),
    LoginCase.ACCOUNT_BLOCKED: (429, "too_many_attempts", None),
    LoginCase.PASSWORD_LEAKED: (401, "password_leaked", None),
    PasswordlessCase.WRONG_EMAIL_CODE: (403, "invalid_grant", "Wrong email or verification code."),
    PasswordlessCase.WRONG_PHONE_CODE: (403, "invalid_grant", "Wrong phone number or verification code."),
    PasswordlessCase.BAD_TENANT: (400, "bad.tenant", None),
    PasswordlessCase.BAD_CLIENT: (400, "bad.client_id", None),
    PasswordlessCase.BAD_CONNECTION: (400, "bad.connection", None),
    PasswordlessCase.BAD_PARAMETERS: (400, "bad.authParams", None),
    PasswordlessCase.BAD_REQUEST: (400, "bad.request", None),
    PasswordlessCase.BAD_PHONE_NUMBER: (400, "bad.phone_number", None),
    PasswordlessCase.CANNOT_SEND_TEXT: (400, "sms_provider_error", None),
    RequestCase.MISSING_PARAMETER: (400, "invalid_request", None),
    OAuthCase.UNSUPPORTED_GRANT: (400, "unsupported_grant_type", None),
    RequestCase.TOO_MANY_REQUESTS: (429, "too_many_requests", None),
    RequestCase.METHOD_NOT_ALLOWED: (405, "method_not_allowed", None),
    RequestCase.UNAVAILABLE: (503, "temporarily_unavailable", None),
}
VALUES: dict[str, Any] = {"grant": "g", "audience": "urn:a", "parameter": "code", "allowed": "POST", "reason": "r", "limit": 1}


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_each_row_of_the_contract_is_in_the_table(case: Case) -> None:
    status, error, description = ROWS[case]
    failure = RequestRefused(case, **VALUES).failure
    assert (failure.status, failure.error) == (status, error)
    assert description is None or failure.description == description


def test_every_case_has_a_text_and_an_error_status() -> None:
    rows = [case.failure for case in (*RequestCase, *OAuthCase, *LoginCase, *PasswordlessCase)]
    assert all(row.description and 400 <= row.status < 600 for row in rows)


def test_every_refusal_of_a_login_has_a_row_in_the_table_of_failures() -> None:
    assert set(_CASES) == set(Refusal)
    rows = {reason: case.failure for reason, case in _CASES.items()}
    assert {reason.name: row.error for reason, row in rows.items()} == {
        "WRONG_CREDENTIALS": "invalid_grant",
        "USER_BLOCKED": "unauthorized",
        "TOO_MANY_ATTEMPTS": "too_many_attempts",
        "PASSWORD_LEAKED": "password_leaked",
        "TOO_MANY_LOGINS": "too_many_requests",
        "SUSPICIOUS_ADDRESS": "too_many_attempts",
    }
