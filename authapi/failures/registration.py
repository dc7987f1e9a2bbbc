"""Errors of clients that register themselves or manage their registration (RFC 7591, 3.2.2; RFC 7592)."""

from __future__ import annotations

from enum import unique

from authapi.failures import Case


@unique
class RegistrationCase(Case):
    INVALID_REDIRECT_URI = 400, "invalid_redirect_uri", "{reason}"
    INVALID_METADATA = 400, "invalid_client_metadata", "{reason}"
    SOFTWARE_STATEMENT = (
        400,
        "invalid_software_statement",
        "Software statements are not accepted: no authority for them is registered. Leave software_statement out.",
    )
    OFF = 404, "endpoint_disabled", "Dynamic client registration is off at this tenant."
    TOKEN_NEEDED = 401, "invalid_token", "Registration needs an initial access token of an administrator, as a Bearer token."
    # A token that is unknown, used up, expired or revoked gets the same error. An unknown client and a wrong token also share one error.
    INVALID_INITIAL_TOKEN = 401, "invalid_token", "The initial access token is invalid."
    INVALID_TOKEN = 401, "invalid_token", "The registration access token does not belong to this client."
    TOO_MANY = 429, "too_many_requests", "Too many clients were registered. Try again later."
    FULL = 403, "access_denied", "This tenant has reached its limit of registered clients. Ask its administrator to delete unused clients."
