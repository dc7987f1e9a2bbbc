"""Errors of requests of SAML applications."""

from __future__ import annotations

from enum import unique

from authapi.failures import Case


@unique
class SamlCase(Case):
    # Shown on a page, because no URL of the application is trusted yet.
    OFF = 400, "invalid_request", "SAML is off for this application: its add-on samlp is not set."
    REQUEST_REFUSED = 400, "invalid_request", "{reason}"
    NO_LOGOUT_ADDRESS = 400, "invalid_request", "The application has no URL for responses to its logout requests."
    # The application gets these errors in a response.
    REQUEST_UNSUPPORTED = 400, "invalid_request", "The SAML request cannot be answered: {reason}"
    BINDING_UNSUPPORTED = 400, "invalid_request", "Responses are sent by HTTP-POST only."
    NAME_ID_UNAVAILABLE = 400, "invalid_request", "The user has no NameID in the format that the request requires."
    CONTEXT_UNAVAILABLE = (
        400,
        "invalid_request",
        "The user did not log in with any of the authentication contexts that the request names.",
    )
    OTHER_USER = 403, "access_denied", "The user who logged in is not the user that the request names."
