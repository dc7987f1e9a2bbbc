"""Errors of logins and logouts of users: with a password, on the hosted pages, and at external providers."""

from __future__ import annotations

from enum import unique

from authapi.failures import Case


@unique
class LoginCase(Case):
    WRONG_CREDENTIALS = 403, "invalid_grant", "Wrong email or password."
    UNKNOWN_REALM = 403, "invalid_grant", "Unknown or invalid realm"
    NO_DEFAULT_DIRECTORY = (
        403,
        "access_denied",
        "Authorization server not configured with default connection. Name a connection as realm.",
    )
    USER_BLOCKED = 403, "unauthorized", "user is blocked"
    ACCOUNT_BLOCKED = (
        429,
        "too_many_attempts",
        "Your account has been blocked after multiple consecutive login attempts. Check your mail to unblock it.",
    )
    TOO_MANY_LOGINS = 429, "too_many_requests", "Too many logins of this user from this IP address. Try again later."
    SUSPICIOUS_ADDRESS = 429, "too_many_attempts", "Too many failed logins from this IP address. Try again later."
    PASSWORD_LEAKED = 401, "password_leaked", "This password was found in a data breach. Choose a new password."
    # Pages show these errors, because no redirect URI of the client is trusted yet (RFC 6749, 4.1.2.1).
    UNKNOWN_CLIENT = 400, "invalid_request", "Unknown client: {client_id}"
    NO_CALLBACK = 400, "invalid_request", "The client has no callback address."
    CALLBACK_MISMATCH = 400, "invalid_request", "Callback URL mismatch. {redirect_uri} is not in the list of allowed callback URLs."
    UNKNOWN_CONNECTION = 400, "invalid_request", "The connection was not found or is not enabled for the client."
    NO_CONNECTION = 400, "invalid_request", "No connection is enabled for the client."
    ORGANIZATION_REQUIRED = 400, "invalid_request", "parameter organization is required for this client"
    ORGANIZATION_NOT_ALLOWED = 400, "invalid_request", "parameter organization is not allowed for this client"
    UNKNOWN_ORGANIZATION = 400, "invalid_request", "parameter organization is invalid"
    INVITATION_WITHOUT_ORGANIZATION = 400, "invalid_request", "parameter organization is required with the parameter invitation"
    INVITATION_OVER = 403, "access_denied", "The invitation was accepted or revoked, or it has expired."
    INVITATION_DECLINED = 403, "access_denied", "User did not accept the invitation"
    NOT_A_MEMBER = 403, "access_denied", "user {user} is not part of the {organization} organization"
    NO_ORGANIZATION = 403, "access_denied", "user {user} is not part of any organization"
    # Clients compare these texts.
    LOGIN_REQUIRED = 400, "login_required", "Login required"
    # OpenID Connect Core Error Code unmet_authentication_requirements 1.0.
    FACTORS_NOT_MET = 400, "unmet_authentication_requirements", "The login does not meet the authentication that the request requires."
    SECOND_FACTOR_REQUIRED = 400, "login_required", "Multifactor authentication required"
    CONSENT_REQUIRED = 400, "consent_required", "Consent required"
    INTERACTION_REQUIRED = 400, "interaction_required", "Interaction required"
    CONSENT_DENIED = 403, "access_denied", "User did not authorize the request"
    REQUEST_EXPIRED = 400, "invalid_request", "This login has expired or was already finished. Begin again at the application."
    FOREIGN_BROWSER = 400, "invalid_request", "This login was begun in another browser. Begin again at the application."
    LOGOUT_ADDRESS_NOT_ALLOWED = 400, "invalid_request", "The URL {address} is not in the list of allowed logout URLs."
    LOGOUT_HINT_MISMATCH = 400, "invalid_request", "The parameter {parameter} does not belong to the id_token_hint."
    INVALID_ID_TOKEN_HINT = 400, "invalid_request", "The id_token_hint is not an id token of this issuer."
    # Errors of logins at an external provider. The client gets these errors; if no URL of the client is trusted, a page shows them instead.
    UPSTREAM_MISCONFIGURED = 500, "server_error", "The connection is not configured completely."
    UPSTREAM_UNREACHABLE = 503, "temporarily_unavailable", "The identity provider cannot be reached. Try again."
    UPSTREAM_ODD_ANSWER = 500, "server_error", "The identity provider gave an answer that cannot be used."
    UPSTREAM_ISSUER_MISMATCH = 403, "access_denied", "The answer is not from the identity provider that got the request."
    UPSTREAM_TOKEN_REFUSED = 403, "access_denied", "The token of the identity provider was not accepted."
    UPSTREAM_CODE_REFUSED = 403, "access_denied", "The identity provider did not complete the login."
    # The description is the text that the provider sent.
    UPSTREAM_DENIED = 403, "access_denied", "{told}"
    UPSTREAM_SIGN_UP_DISABLED = 403, "access_denied", "Public signup is disabled"
    UPSTREAM_EMAIL_TAKEN = 403, "access_denied", "Another user of this connection has this e-mail address."
    UPSTREAM_PROFILE_REFUSED = 403, "access_denied", "The identity provider sent a user profile that cannot be stored."
    UPSTREAM_UNASKED = 403, "access_denied", "The identity provider began this login, which the connection does not allow."
