"""Errors of OAuth 2.0: client authentication, grants, authorization requests, bearer tokens.

This module also translates errors of the toolkit's engine.
"""

from __future__ import annotations

from enum import unique

from oauthlib.oauth2 import OAuth2Error

from authapi.failures import Case, Failure


@unique
class OAuthCase(Case):
    UNSUPPORTED_GRANT = 400, "unsupported_grant_type", "Unsupported grant type: {grant}"
    MISSING_CLIENT_AUTHENTICATION = 401, "invalid_client", "Client authentication is missing."
    # Unknown client, wrong secret and wrong method get the same error, so that an answer does not reveal which clients exist.
    WRONG_CLIENT_AUTHENTICATION = 401, "access_denied", "Unauthorized"
    WRONG_CLIENT_OF_STANDARD = 401, "invalid_client", "Unauthorized"
    CERTIFICATE_NOT_VALID = 401, "invalid_client", "The client certificate has expired or is not valid yet."
    GRANT_NOT_ALLOWED = 403, "unauthorized_client", "Grant type '{grant}' not allowed for the client."
    AUDIENCE_REQUIRED = 403, "access_denied", "Non-global clients are not allowed access to APIv1"
    UNKNOWN_AUDIENCE = 403, "access_denied", "Service not enabled within domain: {audience}"
    NO_CLIENT_GRANT = (
        403,
        "access_denied",
        'Client is not authorized to access "{audience}". You need to create a "client-grant" associated to this API.',
    )
    # A code that is unknown, used, expired, or of another client gets this error. So a client cannot learn which of these cases it is.
    # Refresh tokens also have one error for all these cases.
    INVALID_CODE = 403, "invalid_grant", "Invalid authorization code"
    WRONG_REDIRECT_URI = 403, "invalid_grant", "The redirect_uri differs from the redirect_uri of the authorization request."
    WRONG_CODE_VERIFIER = 403, "invalid_grant", "Failed to verify code verifier"
    INVALID_REFRESH_TOKEN = 403, "invalid_grant", "Unknown or invalid refresh token."
    AUDIENCE_NOT_IN_POLICY = 403, "access_denied", "The refresh token is not valid for the audience: {audience}"
    NO_SIGNING_SECRET = (
        403,
        "unauthorized_client",
        "The secret of this client cannot sign ID tokens, because the service stores only its hash. Rotate the secret.",
    )
    # RFC 6750, 3.1. `/userinfo` sends the next two errors with a `WWW-Authenticate: Bearer` challenge. The token endpoint never sends these
    # errors.
    INVALID_BEARER = 401, "invalid_token", "Unauthorized"
    BEARER_LACKS_SCOPE = 403, "insufficient_scope", "The access token lacks the scope {scope}."
    # An error of the authorization endpoint. It is shown on a page, because no redirect URI is trusted yet (RFC 6749, 4.1.2.1).
    WEB_ORIGIN_NOT_ALLOWED = 400, "invalid_request", "The origin {origin} is not among the client's web origins."
    # This error is for a client that authenticates in a request from a web page.
    ORIGIN_NOT_ALLOWED = 403, "access_denied", "The origin {origin} is not among the client's allowed origins."
    # RFC 9449, 5 and 8. Clients recognize the second error by its text.
    INVALID_DPOP_PROOF = 400, "invalid_dpop_proof", "{reason}"
    USE_DPOP_NONCE = 400, "use_dpop_nonce", "Authorization server requires nonce in DPoP proof"
    WRONG_DPOP_KEY = 403, "invalid_grant", "The code is bound to another DPoP key."
    POSSESSION_REQUIRED = 400, "invalid_request", "{reason}"
    UNSUPPORTED_RESPONSE_TYPE = 400, "unsupported_response_type", "Unsupported response type: {response_type}"
    RESPONSE_TYPE_NOT_ALLOWED = (
        403,
        "unauthorized_client",
        "Response type '{response_type}' not allowed for the client: its grant '{grant}' is off.",
    )
    # RFC 9101, 6. The error is shown on a page, or sent to a client that pushes the request.
    INVALID_REQUEST_OBJECT = 400, "invalid_request_object", "The request object cannot be used. {reason}"
    REQUEST_KEYS_UNAVAILABLE = 503, "temporarily_unavailable", "The keys of the client cannot be read right now. Try again."
    # This error is for logins that cannot use request objects, such as a login that a provider began.
    REQUEST_OBJECT_NOT_SUPPORTED = 400, "request_not_supported", "A request object cannot be used in this login."
    REQUEST_URI_NOT_SUPPORTED = 400, "request_uri_not_supported", "The parameter request_uri is not supported."
    # An unknown, expired or used request, and a request of another client get the same error (RFC 9126, 4). The error is shown on a page,
    # because no redirect URI is trusted.
    INVALID_REQUEST_URI = (
        400,
        "invalid_request_uri",
        "The pushed request is unknown, has expired or was already answered. Begin again at the application.",
    )
    PUSH_REQUIRED = 400, "invalid_request", "The client must push its authorization requests to the endpoint /oauth/par."
    PUSH_BY_PUBLIC_CLIENT = 403, "unauthorized_client", "Only a client that authenticates may push authorization requests."
    PUSH_DISABLED = 404, "endpoint_disabled", "Pushed authorization requests are off at this tenant."
    SIGNATURE_REQUIRED = 400, "invalid_request", "The client must send its authorization requests as signed request objects."
    # RFC 8693, 2.2.2. All unsuitable tokens get the same error: tokens that are unknown, expired, revoked, from another issuer or of
    # another kind, and bound tokens whose key or certificate the sender has not proven.
    INVALID_SUBJECT_TOKEN = 400, "invalid_request", "Unknown or invalid subject token."
    INVALID_ACTOR_TOKEN = 400, "invalid_request", "Unknown or invalid actor token."
    TOKEN_TYPE_NOT_SUPPORTED = 400, "invalid_request", "Unsupported {parameter}: {type}"
    EXCHANGE_NOT_ALLOWED = 403, "unauthorized_client", "The client may not exchange this kind of token. {reason}"
    CHAIN_TOO_LONG = 400, "invalid_request", "The subject token already went through {limit} exchanges."
    INTROSPECTION_DISABLED = 404, "endpoint_disabled", "Introspection of tokens is off at this tenant."
    INTROSPECTION_BY_PUBLIC_CLIENT = 403, "unauthorized_client", "Only a client that authenticates may introspect tokens."
    REGISTRATION_NOT_SUPPORTED = 400, "registration_not_supported", "The parameter `registration` is not supported."
    # The description is the text of the broken rule of the client's compliance level (`authapi.compliance.rules`).
    LEVEL_BREAKS_REQUEST = 400, "invalid_request", "{sentence}"
    LEVEL_BREAKS_CLIENT = 401, "invalid_client", "{sentence}"
    LEVEL_BREAKS_SETTINGS = 400, "unauthorized_client", "{sentence}"
    LEVEL_BREAKS_RESPONSE_TYPE = 400, "unsupported_response_type", "{sentence}"
    LEVEL_BREAKS_PROOF = 400, "invalid_dpop_proof", "{sentence}"
    LEVEL_BREAKS_TARGET = 400, "invalid_target", "{sentence}"
    # An error of the engine, with the status and code of the standard.
    ENGINE_REFUSED = 400, "invalid_request", "{description}"
    # RFC 9396, 5 and RFC 8707, 2.
    INVALID_AUTHORIZATION_DETAILS = 400, "invalid_authorization_details", "{reason}"
    INVALID_TARGET = 400, "invalid_target", "{reason}"
    NO_GRANT_IN_ORGANIZATION = 403, "access_denied", "The client has no grant for this API in the {organization} organization"


def engine_failure(error: OAuth2Error) -> Failure:
    """Translate an error of the toolkit's engine.

    The status stays the same unless clients of the upstream service expect another status.
    """
    status = _ENGINE_STATUS.get(error.error, error.status_code)
    return Failure(status, error.error, error.description or error.error.replace("_", " "))


# Clients of the token endpoint expect 403 in these cases, although RFC 6749, 5.2 requires 400.
_ENGINE_STATUS = {"invalid_grant": 403, "unauthorized_client": 403, "access_denied": 403}
