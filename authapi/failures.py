"""What happened -> status, error, description: the one table of the OAuth endpoints.

Clients compare some of these texts, so they are kept to the letter. Errors of the toolkit's engine are translated here as
well. The management interface has error bodies of its own (`authapi.drf`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from oauthlib.oauth2 import OAuth2Error

TOO_MANY_REQUESTS = "Too many requests. Check the X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset headers."


@dataclass(frozen=True)
class Failure:
    """One row: `description` may name values in braces."""

    status: int
    error: str
    description: str


class Case(Enum):
    UNKNOWN_HOST = auto()
    TENANT_SUSPENDED = auto()
    TENANT_DRAINING = auto()
    METHOD_NOT_ALLOWED = auto()
    BODY_TOO_LARGE = auto()
    BODY_TOO_SLOW = auto()
    MALFORMED_REQUEST = auto()
    MISSING_PARAMETER = auto()
    UNSUPPORTED_GRANT = auto()
    MISSING_CLIENT_AUTHENTICATION = auto()
    WRONG_CLIENT_AUTHENTICATION = auto()
    CERTIFICATE_NOT_VALID = auto()
    GRANT_NOT_ALLOWED = auto()
    AUDIENCE_REQUIRED = auto()
    UNKNOWN_AUDIENCE = auto()
    NO_CLIENT_GRANT = auto()
    INVALID_CODE = auto()
    WRONG_REDIRECT_URI = auto()
    WRONG_CODE_VERIFIER = auto()
    INVALID_REFRESH_TOKEN = auto()
    AUDIENCE_NOT_IN_POLICY = auto()
    NOT_A_MEMBER = auto()
    NO_SIGNING_SECRET = auto()
    WRONG_CREDENTIALS = auto()
    UNKNOWN_REALM = auto()
    NO_DEFAULT_DIRECTORY = auto()
    USER_BLOCKED = auto()
    ACCOUNT_BLOCKED = auto()
    TOO_MANY_LOGINS = auto()
    SUSPICIOUS_ADDRESS = auto()
    PASSWORD_LEAKED = auto()
    INVALID_BEARER = auto()
    BEARER_LACKS_SCOPE = auto()
    TOO_MANY_REQUESTS = auto()
    TOO_MANY_FAILURES = auto()
    UNAVAILABLE = auto()
    UNEXPECTED = auto()


FAILURES: dict[Case, Failure] = {
    Case.UNKNOWN_HOST: Failure(404, "not_found", "No tenant answers on this host."),
    Case.TENANT_SUSPENDED: Failure(403, "access_denied", "The tenant is suspended."),
    Case.TENANT_DRAINING: Failure(503, "temporarily_unavailable", "The tenant is being closed."),
    Case.METHOD_NOT_ALLOWED: Failure(405, "method_not_allowed", "This endpoint answers to {allowed} only."),
    Case.BODY_TOO_LARGE: Failure(413, "invalid_request", "The body is larger than {limit} bytes."),
    Case.BODY_TOO_SLOW: Failure(408, "invalid_request", "The body took too long."),
    Case.MALFORMED_REQUEST: Failure(400, "invalid_request", "{reason}"),
    Case.MISSING_PARAMETER: Failure(400, "invalid_request", "Missing required parameter: {parameter}"),
    Case.UNSUPPORTED_GRANT: Failure(400, "unsupported_grant_type", "Unsupported grant type: {grant}"),
    Case.MISSING_CLIENT_AUTHENTICATION: Failure(401, "invalid_client", "Client authentication is missing."),
    # Unknown client, wrong secret and wrong method look alike: nobody learns which clients exist.
    Case.WRONG_CLIENT_AUTHENTICATION: Failure(401, "access_denied", "Unauthorized"),
    Case.CERTIFICATE_NOT_VALID: Failure(401, "invalid_client", "The client certificate has expired or is not valid yet."),
    Case.GRANT_NOT_ALLOWED: Failure(403, "unauthorized_client", "Grant type '{grant}' not allowed for the client."),
    Case.AUDIENCE_REQUIRED: Failure(403, "access_denied", "Non-global clients are not allowed access to APIv1"),
    Case.UNKNOWN_AUDIENCE: Failure(403, "access_denied", "Service not enabled within domain: {audience}"),
    Case.NO_CLIENT_GRANT: Failure(
        403,
        "access_denied",
        'Client is not authorized to access "{audience}". You need to create a "client-grant" associated to this API.',
    ),
    # A foreign, unknown, expired and used code look alike; so do refresh tokens.
    Case.INVALID_CODE: Failure(403, "invalid_grant", "Invalid authorization code"),
    Case.WRONG_REDIRECT_URI: Failure(403, "invalid_grant", "The redirect_uri is not the one of the authorization request."),
    Case.WRONG_CODE_VERIFIER: Failure(403, "invalid_grant", "Failed to verify code verifier"),
    Case.INVALID_REFRESH_TOKEN: Failure(403, "invalid_grant", "Unknown or invalid refresh token."),
    Case.AUDIENCE_NOT_IN_POLICY: Failure(403, "access_denied", "The refresh token is not good for the audience: {audience}"),
    Case.NOT_A_MEMBER: Failure(403, "access_denied", "user {user} is not part of the {organization} organization"),
    Case.NO_SIGNING_SECRET: Failure(
        403, "unauthorized_client", "Id tokens of this client are signed with its secret, which was not kept. Rotate the secret."
    ),
    Case.WRONG_CREDENTIALS: Failure(403, "invalid_grant", "Wrong email or password."),
    Case.UNKNOWN_REALM: Failure(403, "invalid_grant", "Unknown or invalid realm"),
    Case.NO_DEFAULT_DIRECTORY: Failure(
        403, "access_denied", "Authorization server not configured with default connection. Name a connection as realm."
    ),
    Case.USER_BLOCKED: Failure(403, "unauthorized", "user is blocked"),
    Case.ACCOUNT_BLOCKED: Failure(
        429, "too_many_attempts", "Your account has been blocked after multiple consecutive login attempts. Check your mail to unblock it."
    ),
    Case.TOO_MANY_LOGINS: Failure(429, "too_many_requests", "Too many logins of this user from this address. Try again later."),
    Case.SUSPICIOUS_ADDRESS: Failure(429, "too_many_attempts", "Too many failed logins from this address. Try again later."),
    Case.PASSWORD_LEAKED: Failure(401, "password_leaked", "This password was part of a breach elsewhere. Choose a new one."),
    # RFC 6750, 3.1. Both stand beside a challenge, which the token endpoint never sends.
    Case.INVALID_BEARER: Failure(401, "invalid_token", "Unauthorized"),
    Case.BEARER_LACKS_SCOPE: Failure(403, "insufficient_scope", "The access token lacks the scope {scope}."),
    Case.TOO_MANY_REQUESTS: Failure(429, "too_many_requests", TOO_MANY_REQUESTS),
    Case.TOO_MANY_FAILURES: Failure(429, "too_many_attempts", "Too many failed authentications from this address. Try again later."),
    Case.UNAVAILABLE: Failure(503, "temporarily_unavailable", "The service cannot answer right now. Try again."),
    Case.UNEXPECTED: Failure(500, "server_error", "The service met an unexpected condition."),
}


class RequestRefused(Exception):
    """A request to an OAuth endpoint was refused; `case` names the row of the table."""

    def __init__(self, case: Case, **values: Any) -> None:
        row = FAILURES[case]
        super().__init__(case.name)
        self.case = case
        self.failure = Failure(row.status, row.error, row.description.format(**values))


def engine_failure(error: OAuth2Error) -> Failure:
    """Translate a refusal of the toolkit's engine; its own status stands unless upstream clients expect another."""
    status = _ENGINE_STATUS.get(error.error, error.status_code)
    return Failure(status, error.error, error.description or error.error.replace("_", " "))


# Clients of the token endpoint expect 403 where RFC 6749, 5.2 has 400.
_ENGINE_STATUS = {"invalid_grant": 403, "unauthorized_client": 403, "access_denied": 403}
