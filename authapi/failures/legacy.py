"""Errors of the endpoints of old clients (contract, 2.9). Clients recognize some of the errors by their texts."""

from __future__ import annotations

from enum import unique

from authapi.failures import Case


@unique
class LegacyCase(Case):
    # Errors of logins. No text reveals whether the account exists.
    WRONG_CREDENTIALS = 401, "invalid_user_password", "Wrong email or password."
    # Errors of login forms in applications. The scripts of the forms recognize these errors by the error code.
    WRONG_CREDENTIALS_OF_FORM = 401, "access_denied", "Wrong email or password."
    WRONG_EMAIL_CODE_OF_FORM = 401, "access_denied", "Wrong email or verification code."
    WRONG_PHONE_CODE_OF_FORM = 401, "access_denied", "Wrong phone number or verification code."
    USER_BLOCKED = 401, "unauthorized", "user is blocked"
    PASSWORD_LEAKED = 401, "password_leaked", "This password was found in a data breach. Choose a new password."
    ACCOUNT_BLOCKED = (
        429,
        "too_many_attempts",
        "Your account has been blocked after multiple consecutive login attempts. Check your mail to unblock it.",
    )
    SUSPICIOUS_ADDRESS = 429, "too_many_attempts", "Too many failed logins from this IP address. Try again later."
    TOO_MANY_LOGINS = 429, "too_many_logins", "Too many logins of this user from this IP address. Try again later."
    TOO_MANY_DELEGATIONS = 429, "too_many_requests", "Too many delegations of this user from this IP address. Try again later."
    PAGE_NEEDED = 403, "access_denied", "This login needs a page of the service. Send the user to /authorize."
    # Errors of clients and connections.
    UNKNOWN_CLIENT = 403, "unauthorized_client", "invalid client"
    GRANT_NOT_ALLOWED = 403, "unauthorized_client", "Grant type '{grant}' not allowed for the client."
    NO_LEGACY_GRANT = 403, "unauthorized_client", "The client has no legacy grant, which this endpoint needs."
    PROTECTED_CLIENT = (
        403,
        "unauthorized_client",
        "Old endpoints do not serve a client that requires proof of possession or has a compliance level. Send the user to /authorize.",
    )
    MISSING_PARAMETER = 400, "invalid_request", "missing {parameter} parameter"
    WRONG_GRANT_TYPE = 400, "invalid_request", "The grant_type must be {grants}."
    CONNECTION_NOT_FOUND = 400, "invalid_request", "the connection was not found"
    CONNECTION_DISABLED = 400, "invalid_request", "the connection was disabled"
    WRONG_STRATEGY = 400, "invalid_request", "specified strategy does not support requested operation"
    # Errors of tokens.
    INVALID_DEVICE_TOKEN = 400, "invalid_grant", "The id_token is not signed by a key of this device, is too old, or was used before."
    INVALID_SOCIAL_TOKEN = 401, "invalid_request", "invalid access_token: invalid_token"
    PROVIDER_SILENT = 503, "temporarily_unavailable", "The identity provider cannot be reached. Try again."
    PROVIDER_CANNOT_TELL = (
        400,
        "invalid_request",
        "The provider of this connection does not say to which application it issued a token, so its tokens cannot be accepted.",
    )
    ONE_TOKEN = 400, "invalid_request", "Send either an id_token or a refresh_token."
    INVALID_ID_TOKEN = 401, "invalid_token", "The id_token is invalid or has expired."
    INVALID_REFRESH_TOKEN = 401, "invalid_token", "Unknown or invalid refresh token."
    INVALID_ACCESS_TOKEN = 401, "unauthorized", "The access token is invalid or has expired."
    ROTATING_TOKENS = 400, "invalid_request", "Refresh tokens of this client rotate: exchange them at /oauth/token."
    TARGET_NOT_ALLOWED = 400, "invalid_request", "The target is unknown or does not allow delegation by this client."
    WRONG_API_TYPE = 400, "invalid_request", "Unsupported api_type: {api_type}. Only id tokens for clients are issued: send api_type=app."
    # Errors of login forms in applications.
    OWN_FORMS_OFF = 403, "unauthorized_client", "Cross-origin login is off for this client."
    ORIGIN_MISSING = 403, "access_denied", "The request has no Origin header: this endpoint answers only scripts of web pages."
    ORIGIN_NOT_ALLOWED = 403, "access_denied", "The origin {origin} is not among the client's allowed origins."
    JSON_NEEDED = 400, "invalid_request", "The content type must be application/json."
    WRONG_CREDENTIAL_TYPE = 400, "invalid_request", "Unsupported credential_type: {credential_type}"
    UNKNOWN_REALM = 403, "access_denied", "Unknown or invalid realm"
    FOREIGN_PAGE = 403, "access_denied", "This endpoint answers only pages of this host. Pages of other hosts must use /co/authenticate."
    # The client gets this error by a redirect. All reasons have one text, so that the text does not help an attacker to guess a ticket.
    INVALID_TICKET = 403, "access_denied", "The login ticket is invalid, used, expired, or from another browser or page."
    # Errors of linked accounts.
    NOT_LINKED = 400, "invalid_request", "The identity is not linked to this user."
    CANNOT_UNLINK = 400, "invalid_request", "The identity cannot be unlinked: {reason}"
    LINK_NEEDS_SESSION = 403, "access_denied", "Log in as the user of the access token in this browser before you link an account."
    LINK_DENIED = 403, "access_denied", "The user did not agree to link the accounts."
    CANNOT_LINK = 400, "invalid_request", "The accounts cannot be linked: {reason}"
    IMPERSONATION_OFF = 403, "access_denied", "Impersonation is not available. Log in as a test user, or ask the user."
