"""What happened -> status, error, description: the one table of the OAuth endpoints.

Clients compare some of these texts, so they are kept to the letter. Errors of the toolkit's engine are translated here as
well. The management interface has error bodies of its own (`authapi.drf`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from oauthlib.oauth2 import OAuth2Error

from authapi.edge.throttling import Rate

TOO_MANY_REQUESTS = "Too many requests. Check the X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset headers."


@dataclass(frozen=True)
class Failure:
    """One row: `description` may name values in braces."""

    status: int
    error: str
    description: str


class Case(Enum):
    UNKNOWN_HOST = auto()
    UNSERVED = auto()
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
    WRONG_CLIENT_AT_REVOCATION = auto()
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
    NO_ORGANIZATION = auto()
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
    UNKNOWN_CLIENT = auto()
    NO_CALLBACK = auto()
    CALLBACK_MISMATCH = auto()
    WEB_ORIGIN_NOT_ALLOWED = auto()
    ORIGIN_NOT_ALLOWED = auto()
    DPOP_NOT_SUPPORTED = auto()
    REPEATED_PARAMETER = auto()
    UNSUPPORTED_RESPONSE_TYPE = auto()
    RESPONSE_TYPE_NOT_ALLOWED = auto()
    REQUEST_OBJECT_NOT_SUPPORTED = auto()
    REQUEST_URI_NOT_SUPPORTED = auto()
    REGISTRATION_NOT_SUPPORTED = auto()
    UNKNOWN_CONNECTION = auto()
    NO_CONNECTION = auto()
    ORGANIZATION_REQUIRED = auto()
    ORGANIZATION_NOT_ALLOWED = auto()
    UNKNOWN_ORGANIZATION = auto()
    NO_GRANT_IN_ORGANIZATION = auto()
    LOGIN_REQUIRED = auto()
    CONSENT_REQUIRED = auto()
    INTERACTION_REQUIRED = auto()
    CONSENT_DENIED = auto()
    REQUEST_EXPIRED = auto()
    FOREIGN_BROWSER = auto()
    LOGOUT_ADDRESS_NOT_ALLOWED = auto()
    LOGOUT_HINT_MISMATCH = auto()
    INVALID_ID_TOKEN_HINT = auto()
    SAML_OFF = auto()
    WSFED_OFF = auto()
    SAML_REQUEST_REFUSED = auto()
    SAML_REQUEST_UNSUPPORTED = auto()
    SAML_BINDING_UNSUPPORTED = auto()
    SAML_NAME_ID_UNAVAILABLE = auto()
    SAML_CONTEXT_UNAVAILABLE = auto()
    SAML_OTHER_USER = auto()
    SAML_NO_LOGOUT_ADDRESS = auto()
    UPSTREAM_MISCONFIGURED = auto()
    UPSTREAM_UNREACHABLE = auto()
    UPSTREAM_ODD_ANSWER = auto()
    UPSTREAM_ISSUER_MISMATCH = auto()
    UPSTREAM_TOKEN_REFUSED = auto()
    UPSTREAM_CODE_REFUSED = auto()
    UPSTREAM_DENIED = auto()
    UPSTREAM_SIGN_UP_DISABLED = auto()
    UPSTREAM_EMAIL_TAKEN = auto()
    UPSTREAM_PROFILE_REFUSED = auto()
    UPSTREAM_UNASKED = auto()
    TOO_MANY_REQUESTS = auto()
    UNAVAILABLE = auto()
    UNEXPECTED = auto()


FAILURES: dict[Case, Failure] = {
    Case.UNKNOWN_HOST: Failure(404, "not_found", "No tenant answers on this host."),
    Case.UNSERVED: Failure(404, "not_found", "This service does not serve this address."),
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
    Case.WRONG_CLIENT_AT_REVOCATION: Failure(401, "invalid_client", "Unauthorized"),
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
    Case.NO_ORGANIZATION: Failure(403, "access_denied", "user {user} is not part of any organization"),
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
    # Of the authorization endpoint. The first four are shown on a page: no address is trusted yet (RFC 6749, 4.1.2.1).
    Case.UNKNOWN_CLIENT: Failure(400, "invalid_request", "Unknown client: {client_id}"),
    Case.NO_CALLBACK: Failure(400, "invalid_request", "The client has no callback address."),
    Case.CALLBACK_MISMATCH: Failure(
        400, "invalid_request", "Callback URL mismatch. {redirect_uri} is not in the list of allowed callback URLs."
    ),
    Case.WEB_ORIGIN_NOT_ALLOWED: Failure(400, "invalid_request", "The origin {origin} is not among the client's web origins."),
    Case.ORIGIN_NOT_ALLOWED: Failure(403, "access_denied", "The origin {origin} is not among the client's allowed origins."),
    # RFC 9449, 5: its error code, so that a client sees that no token would be bound.
    Case.DPOP_NOT_SUPPORTED: Failure(400, "invalid_dpop_proof", "DPoP is not supported. Send the request without a proof."),
    Case.REPEATED_PARAMETER: Failure(400, "invalid_request", "The parameter {parameter} is repeated."),
    Case.UNSUPPORTED_RESPONSE_TYPE: Failure(400, "unsupported_response_type", "Unsupported response type: {response_type}"),
    Case.RESPONSE_TYPE_NOT_ALLOWED: Failure(
        403, "unauthorized_client", "Response type '{response_type}' not allowed for the client: its grant '{grant}' is off."
    ),
    Case.REQUEST_OBJECT_NOT_SUPPORTED: Failure(400, "request_not_supported", "Request objects are not supported."),
    Case.REQUEST_URI_NOT_SUPPORTED: Failure(400, "request_uri_not_supported", "The parameter request_uri is not supported."),
    Case.REGISTRATION_NOT_SUPPORTED: Failure(400, "registration_not_supported", "The parameter registration is not supported."),
    Case.UNKNOWN_CONNECTION: Failure(400, "invalid_request", "The connection was not found or is not enabled for the client."),
    Case.NO_CONNECTION: Failure(400, "invalid_request", "No connection is enabled for the client."),
    Case.ORGANIZATION_REQUIRED: Failure(400, "invalid_request", "parameter organization is required for this client"),
    Case.ORGANIZATION_NOT_ALLOWED: Failure(400, "invalid_request", "parameter organization is not allowed for this client"),
    Case.UNKNOWN_ORGANIZATION: Failure(400, "invalid_request", "parameter organization is invalid"),
    Case.NO_GRANT_IN_ORGANIZATION: Failure(403, "access_denied", "The client has no grant for this API in the {organization} organization"),
    # Clients compare these texts.
    Case.LOGIN_REQUIRED: Failure(400, "login_required", "Login required"),
    Case.CONSENT_REQUIRED: Failure(400, "consent_required", "Consent required"),
    Case.INTERACTION_REQUIRED: Failure(400, "interaction_required", "Interaction required"),
    Case.CONSENT_DENIED: Failure(403, "access_denied", "User did not authorize the request"),
    Case.REQUEST_EXPIRED: Failure(
        400, "invalid_request", "This login has expired or was finished already. Begin again at the application."
    ),
    Case.FOREIGN_BROWSER: Failure(400, "invalid_request", "This login was begun in another browser. Begin again at the application."),
    Case.LOGOUT_ADDRESS_NOT_ALLOWED: Failure(400, "invalid_request", "The address {address} is not in the list of allowed logout URLs."),
    Case.LOGOUT_HINT_MISMATCH: Failure(400, "invalid_request", "The parameter {parameter} does not belong to the id_token_hint."),
    Case.INVALID_ID_TOKEN_HINT: Failure(400, "invalid_request", "The id_token_hint is not an id token of this issuer."),
    # Of SAML: the first two and the last are shown on a page, the others are told to the application in a response.
    Case.WSFED_OFF: Failure(400, "invalid_request", "WS-Federation is off for this application: its add-on wsfed is not set."),
    Case.SAML_OFF: Failure(400, "invalid_request", "SAML is off for this application: its add-on samlp is not set."),
    Case.SAML_REQUEST_REFUSED: Failure(400, "invalid_request", "{reason}"),
    Case.SAML_REQUEST_UNSUPPORTED: Failure(400, "invalid_request", "{reason}"),
    Case.SAML_BINDING_UNSUPPORTED: Failure(400, "invalid_request", "Responses are sent by HTTP-POST only."),
    Case.SAML_NAME_ID_UNAVAILABLE: Failure(400, "invalid_request", "The user has no NameID in the format that the request asks for."),
    Case.SAML_CONTEXT_UNAVAILABLE: Failure(
        400, "invalid_request", "The user did not log in with any of the authentication contexts that the request asks for."
    ),
    Case.SAML_OTHER_USER: Failure(403, "access_denied", "The user who logged in is not the one that the request names."),
    Case.SAML_NO_LOGOUT_ADDRESS: Failure(400, "invalid_request", "The application has no address for answers to logouts."),
    # Of logins at a provider elsewhere: told to the client, or on a page where nobody's address is trusted.
    Case.UPSTREAM_MISCONFIGURED: Failure(500, "server_error", "The connection is not configured completely."),
    Case.UPSTREAM_UNREACHABLE: Failure(503, "temporarily_unavailable", "The identity provider cannot be reached. Try again."),
    Case.UPSTREAM_ODD_ANSWER: Failure(500, "server_error", "The identity provider gave an answer that cannot be used."),
    Case.UPSTREAM_ISSUER_MISMATCH: Failure(403, "access_denied", "The answer is not from the identity provider that was asked."),
    Case.UPSTREAM_TOKEN_REFUSED: Failure(403, "access_denied", "The token of the identity provider was not accepted."),
    Case.UPSTREAM_CODE_REFUSED: Failure(403, "access_denied", "The identity provider did not complete the login."),
    # In the provider's own words.
    Case.UPSTREAM_DENIED: Failure(403, "access_denied", "{told}"),
    Case.UPSTREAM_SIGN_UP_DISABLED: Failure(403, "access_denied", "Public signup is disabled"),
    Case.UPSTREAM_EMAIL_TAKEN: Failure(403, "access_denied", "Another user of this connection has this e-mail address."),
    Case.UPSTREAM_PROFILE_REFUSED: Failure(403, "access_denied", "The identity provider says of the user what cannot be kept."),
    Case.UPSTREAM_UNASKED: Failure(
        403, "access_denied", "The identity provider began this login on its own, which the connection does not allow."
    ),
    Case.TOO_MANY_REQUESTS: Failure(429, "too_many_requests", TOO_MANY_REQUESTS),
    Case.UNAVAILABLE: Failure(503, "temporarily_unavailable", "The service cannot answer right now. Try again."),
    Case.UNEXPECTED: Failure(500, "server_error", "The service met an unexpected condition."),
}


class RequestRefused(Exception):
    """A request to an OAuth endpoint was refused; `case` names the row of the table.

    `rate` is that of the bucket that refused it, None where no bucket did or the chain knows it.
    """

    def __init__(self, case: Case, *, rate: Rate | None = None, **values: Any) -> None:
        row = FAILURES[case]
        super().__init__(case.name)
        self.case = case
        self.rate = rate
        self.failure = Failure(row.status, row.error, row.description.format(**values))


def engine_failure(error: OAuth2Error) -> Failure:
    """Translate a refusal of the toolkit's engine; its own status stands unless upstream clients expect another."""
    status = _ENGINE_STATUS.get(error.error, error.status_code)
    return Failure(status, error.error, error.description or error.error.replace("_", " "))


# Clients of the token endpoint expect 403 where RFC 6749, 5.2 has 400.
_ENGINE_STATUS = {"invalid_grant": 403, "unauthorized_client": 403, "access_denied": 403}
