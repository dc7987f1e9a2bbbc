"""Errors of logins without a password: of requests for a code, and of the code itself."""

from __future__ import annotations

from enum import unique

from authapi.failures import Case


@unique
class PasswordlessCase(Case):
    # Errors of `/passwordless/start` (contract 2.5 and 8).
    BAD_TENANT = 400, "bad.tenant", "No tenant answers on this host."
    BAD_CLIENT = 400, "bad.client_id", "The client_id is missing or unknown."
    BAD_CONNECTION = 400, "bad.connection", "{reason}"
    BAD_PARAMETERS = 400, "bad.authParams", "{reason}"
    BAD_REQUEST = 400, "bad.request", "{reason}"
    BAD_PHONE_NUMBER = (
        400,
        "bad.phone_number",
        "The phone_number must be a plus sign and up to 15 digits, with the code of the country, such as +15550100000.",
    )
    CANNOT_SEND_TEXT = 400, "sms_provider_error", "No sender for text messages is configured."
    CANNOT_SEND_MAIL = 400, "bad.connection", "No sender for email is configured."
    TOO_MANY_CODES = 429, "too_many_requests", "Too many codes were requested. Use the newest code, or request another code later."
    # Errors of `/oauth/token` when a client sends the code that the user received. Client libraries compare the first two texts.
    WRONG_EMAIL_CODE = 403, "invalid_grant", "Wrong email or verification code."
    WRONG_PHONE_CODE = 403, "invalid_grant", "Wrong phone number or verification code."
    TOO_MANY_GUESSES = 429, "too_many_attempts", "Too many wrong codes were tried for this email address or phone number. Try again later."
    # Errors of `/passwordless/verify`.
    UNVERIFIED_EMAIL = 401, "invalid_user_password", "Wrong email or verification code."
    UNVERIFIED_PHONE = 401, "invalid_user_password", "Wrong phone number or verification code."
    # The browser returns this error to the client by a redirect.
    WRONG_REDIRECTED_CODE = 403, "access_denied", "Wrong email, phone number or verification code."
    # Errors that pages show.
    LINK_EXPIRED = 400, "invalid_request", "This link has expired or was already used. Request a new one where you log in."
