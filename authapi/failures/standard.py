"""Statuses and codes of the standards, for clients that request them (`oauth_standard_errors`, or a compliance level).

Clients of the upstream service expect other statuses and codes than RFC 6749, 5.2. The texts stay the same.
"""

from __future__ import annotations

from authapi.failures import Case, Failure
from authapi.failures.ciba import CibaCase
from authapi.failures.device import DeviceCase
from authapi.failures.factors import FactorCase
from authapi.failures.logins import LoginCase
from authapi.failures.oauth import OAuthCase
from authapi.failures.passkeys import PasskeyCase
from authapi.failures.requests import RequestCase

# For each case whose error code is not registered for token responses of OAuth and OpenID Connect: the registered code to send instead.
STANDARD_CODES: dict[Case, str] = {
    OAuthCase.WRONG_CLIENT_AUTHENTICATION: "invalid_client",
    OAuthCase.ORIGIN_NOT_ALLOWED: "unauthorized_client",
    OAuthCase.PUSH_DISABLED: "invalid_request",
    OAuthCase.INTROSPECTION_DISABLED: "invalid_request",
    # RFC 8707, 2: the API is unknown, or not for this client.
    OAuthCase.AUDIENCE_REQUIRED: "invalid_target",
    OAuthCase.UNKNOWN_AUDIENCE: "invalid_target",
    OAuthCase.NO_CLIENT_GRANT: "invalid_target",
    OAuthCase.NO_GRANT_IN_ORGANIZATION: "invalid_target",
    OAuthCase.AUDIENCE_NOT_IN_POLICY: "invalid_target",
    # RFC 6749, 5.2: the grant that the client sends for a user is not valid.
    LoginCase.USER_BLOCKED: "invalid_grant",
    LoginCase.ACCOUNT_BLOCKED: "invalid_grant",
    LoginCase.PASSWORD_LEAKED: "invalid_grant",
    LoginCase.SUSPICIOUS_ADDRESS: "invalid_grant",
    LoginCase.TOO_MANY_LOGINS: "invalid_grant",
    FactorCase.MFA_REQUIRED: "invalid_grant",
    FactorCase.TOKEN_EXPIRED: "invalid_grant",
    FactorCase.TOO_MANY_GUESSES: "invalid_grant",
    PasskeyCase.NO_PASSKEYS: "invalid_request",
    PasskeyCase.SIGN_UP_DISABLED: "invalid_request",
    PasskeyCase.CLOSED_ORGANIZATION: "invalid_request",
    PasskeyCase.REFUSED_SIGN_UP: "invalid_grant",
    PasskeyCase.TOO_MANY_SIGN_UPS: "invalid_grant",
    PasskeyCase.TOO_MANY: "temporarily_unavailable",
    LoginCase.NOT_A_MEMBER: "invalid_grant",
    LoginCase.NO_ORGANIZATION: "invalid_grant",
    LoginCase.NO_DEFAULT_DIRECTORY: "invalid_request",
    CibaCase.TOO_MANY: "temporarily_unavailable",
    DeviceCase.TOO_MANY: "temporarily_unavailable",
    RequestCase.TOO_MANY_REQUESTS: "temporarily_unavailable",
}
# RFC 6749, 5.2 uses 400 for every code except `invalid_client`, and RFC 8628, 3.5 uses 400, too. The statuses in `_OF_HTTP` are not
# replaced: they tell HTTP clients that they may retry later, or that the body was too long.
STANDARD_STATUSES = {"invalid_client": 401, "slow_down": 400}
_OF_HTTP = frozenset({408, 413, 429, 500, 503})
# The codes of authorization responses: RFC 6749, 4.1.2.1; OpenID Connect Core 1.0, 3.1.2.6; RFC 8707, 2; RFC 9396, 5; Unmet
# Authentication Requirements 1.0.
AUTHORIZATION_CODES = frozenset(
    {
        "invalid_request", "unauthorized_client", "access_denied", "unsupported_response_type", "invalid_scope", "server_error",
        "temporarily_unavailable", "interaction_required", "login_required", "account_selection_required", "consent_required",
        "invalid_request_uri", "invalid_request_object", "request_not_supported", "request_uri_not_supported",
        "registration_not_supported", "invalid_target", "invalid_authorization_details", "unmet_authentication_requirements",
    }
)  # fmt: skip


def standard_failure(failure: Failure, case: Case) -> Failure:
    """Return a refusal of a token endpoint, or of a similar endpoint, with the status and error code of RFC 6749, 5.2."""
    error = STANDARD_CODES.get(case, failure.error)
    status = STANDARD_STATUSES.get(error) or (failure.status if failure.status in _OF_HTTP else 400)
    return Failure(status, error, failure.description)


def standard_redirect(failure: Failure) -> str:
    """Return the error code for an authorization response, which reaches the client through a redirect."""
    return failure.error if failure.error in AUTHORIZATION_CODES else "access_denied"
