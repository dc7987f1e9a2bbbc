"""Errors of a login on a device (RFC 8628): for the waiting device, and for the user in the browser."""

from __future__ import annotations

from enum import unique

from authapi.failures import Case


@unique
class DeviceCase(Case):
    # Errors of the token endpoint (contract, 2.11). Client libraries compare the codes.
    PENDING = 403, "authorization_pending", "User has yet to authorize device code."
    SLOW_DOWN = 429, "slow_down", "The client polls too fast. Wait {interval} seconds between two requests."
    EXPIRED = 403, "expired_token", "The device code has expired. Begin again."
    DENIED = 403, "access_denied", "User did not authorize the request"
    # One error for all these codes: unknown, used, long expired, and of another client.
    INVALID_CODE = 403, "invalid_grant", "Invalid or expired device code."
    WRONG_DPOP_KEY = 403, "invalid_grant", "The device code is bound to another DPoP key."
    # Errors of the device authorization endpoint.
    TOO_MANY = 429, "too_many_requests", "Too many device codes were requested. Try again later."
    # Errors that pages show.
    CODE_OVER = 400, "invalid_request", "The code of the device was already used."
    CODE_EXPIRED = 400, "invalid_request", "The code of the device has expired."
