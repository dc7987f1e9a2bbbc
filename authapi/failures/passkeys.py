"""Errors of the endpoints for passkeys in applications (contract 2.3 and 2.11)."""

from __future__ import annotations

from enum import unique

from authapi.failures import Case


@unique
class PasskeyCase(Case):
    THIRD_PARTY = 403, "unauthorized_client", "Only a first-party application may request passkeys."
    NO_PASSKEYS = 403, "access_denied", "Passkeys are off at the tenant, or this connection does not accept them."
    SIGN_UP_DISABLED = 403, "access_denied", "Public sign-up is disabled for this connection."
    CLOSED_ORGANIZATION = (
        403,
        "access_denied",
        "A sign-up through this connection creates no membership in the organization. Invite the user.",
    )
    ODD_PROFILE = 400, "invalid_request", "{reason}"
    TOO_MANY = 429, "too_many_requests", "Too many passkeys were requested. Try again later."
    UNKNOWN_SESSION = 403, "invalid_grant", "The auth_session is unknown, was used, or has expired."
    # One error for all cases that would otherwise reveal which accounts and passkeys exist.
    WRONG_PASSKEY = 403, "invalid_grant", "The passkey was not accepted."
    REFUSED_SIGN_UP = 400, "invalid_signup", "Invalid sign up"
    TOO_MANY_SIGN_UPS = 429, "too_many_attempts", "Too many sign-ups from this IP address."
