"""Errors that can occur at every endpoint of the authentication interface."""

from __future__ import annotations

from enum import unique

from authapi.failures import Case


@unique
class RequestCase(Case):
    UNKNOWN_HOST = 404, "not_found", "No tenant answers on this host."
    UNSERVED = 404, "not_found", "This service does not serve this address."
    TENANT_SUSPENDED = 403, "access_denied", "The tenant is suspended."
    TENANT_STOPPED = 503, "temporarily_unavailable", "The tenant moves to another installation. Try again later."
    TENANT_DRAINING = 503, "temporarily_unavailable", "The tenant is being closed."
    METHOD_NOT_ALLOWED = 405, "method_not_allowed", "This endpoint accepts only these methods: {allowed}."
    BODY_TOO_LARGE = 413, "invalid_request", "The body is larger than {limit} bytes."
    BODY_TOO_SLOW = 408, "invalid_request", "The body took too long."
    MALFORMED_REQUEST = 400, "invalid_request", "{reason}"
    MISSING_PARAMETER = 400, "invalid_request", "Missing required parameter: {parameter}"
    REPEATED_PARAMETER = 400, "invalid_request", "The parameter {parameter} is repeated."
    TOO_MANY_REQUESTS = (
        429,
        "too_many_requests",
        "Too many requests. Check the X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset headers.",
    )
    UNAVAILABLE = 503, "temporarily_unavailable", "The service cannot answer right now. Try again."
    UNEXPECTED = 500, "server_error", "The service met an unexpected condition."


# The management interface and streams use the same texts.
TENANT_STOPPED = RequestCase.TENANT_STOPPED.failure.description
TOO_MANY_REQUESTS = RequestCase.TOO_MANY_REQUESTS.failure.description
