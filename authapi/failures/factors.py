"""Errors of the endpoints for second factors in applications (contract 2.11)."""

from __future__ import annotations

from enum import unique

from authapi.failures import Case


@unique
class FactorCase(Case):
    # Client libraries compare this error code and this text.
    MFA_REQUIRED = 403, "mfa_required", "Multifactor authentication required"
    UNKNOWN_TOKEN = 403, "invalid_grant", "Malformed mfa_token"
    TOKEN_EXPIRED = 403, "expired_token", "mfa_token is expired"
    INVALID_BEARER = 401, "invalid_token", "The token is unknown, has expired, or is not for second factors."
    LACKS_SCOPE = 403, "insufficient_scope", "{reason}"
    WRONG_OTP = 403, "invalid_grant", "Invalid otp_code."
    WRONG_BINDING_CODE = 403, "invalid_grant", "Invalid binding_code."
    WRONG_RECOVERY_CODE = 403, "invalid_grant", "Invalid recovery_code."
    TOO_MANY_GUESSES = 429, "too_many_attempts", "Too many wrong codes were tried for this user. Try again later."
    TOO_MANY_MESSAGES = (
        429,
        "too_many_requests",
        "Too many codes were sent to this user. Use the newest code, or request another code later.",
    )
    ASSOCIATION_REQUIRED = 400, "association_required", "The user has no factor of this type. Enroll a factor with /mfa/associate first."
    UNSUPPORTED_CHALLENGE = 400, "unsupported_challenge_type", "None of these types is offered: {types}"
    ALREADY_ENROLLED = (
        403,
        "access_denied",
        "The user already has a factor. Prove this factor first: use a token for {audience} with the scope enroll.",
    )
    NO_SENDER = 400, "invalid_request", "No sender for this kind of message is configured."
    TYPE_NOT_OFFERED = 400, "invalid_request", "The tenant does not offer this type of factor: {type}"
    UNKNOWN_AUTHENTICATOR = 404, "not_found", "The user has no such authenticator."
    NOT_ENROLLED = 400, "invalid_request", "{reason}"
