"""Errors of logins that a client begins and a user approves elsewhere (OpenID CIBA Core 1.0)."""

from __future__ import annotations

from enum import unique

from authapi.failures import Case


@unique
class CibaCase(Case):
    # Errors of `/bc-authorize` (CIBA 13; contract, 2.11). Client libraries recognize the first two errors by their texts.
    UNKNOWN_USER = 400, "unknown_user_id", "User ID is malformed or unknown"
    NO_OPENID = 400, "invalid_request", "openid scope must be requested"
    INVALID_REQUEST = 400, "invalid_request", "{reason}"
    BINDING_MESSAGE = 400, "invalid_binding_message", "{reason}"
    PUBLIC_CLIENT = 401, "invalid_client", "Only applications that authenticate may request approvals."
    NO_NOTIFIER = 400, "invalid_request", "The user cannot be notified. {reason}"
    TOO_MANY = 429, "too_many_requests", "Too many approvals were requested. Try again later."
    # Errors of the token endpoint (CIBA 11).
    PENDING = 400, "authorization_pending", "The end-user authorization is pending"
    SLOW_DOWN = 400, "slow_down", "You are polling faster than allowed. Try again in {interval} seconds."
    EXPIRED = 400, "expired_token", "The request has expired. Begin again."
    DENIED = 400, "access_denied", "The end-user denied the authorization request or it has been expired"
    # Ids that are unknown, used, long expired, or of another client all get this one error.
    INVALID_ID = 400, "invalid_grant", "Invalid or expired auth_req_id."
    WRONG_DPOP_KEY = 400, "invalid_grant", "The auth_req_id is bound to another DPoP key."
    # Errors that pages show.
    UNKNOWN_LINK = 404, "invalid_request", "No request of an application has this link."
    REQUEST_OVER = 400, "invalid_request", "The request of the application was already answered."
    REQUEST_EXPIRED = 400, "invalid_request", "The request of the application has expired."
    OTHER_USER = 403, "access_denied", "The request of the application is for another user."
