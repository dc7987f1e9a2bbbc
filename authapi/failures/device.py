"""What may go wrong with a login on a device (RFC 8628): what the device is told while it waits, and what a person meets."""

from __future__ import annotations

from enum import unique

from authapi.failures import Case


@unique
class DeviceCase(Case):
    # Of the token endpoint (contract, 2.11). Client libraries compare the codes.
    PENDING = 403, "authorization_pending", "User has yet to authorize device code."
    SLOW_DOWN = 429, "slow_down", "The client polls too fast. Wait {interval} seconds between two requests."
    EXPIRED = 403, "expired_token", "The device code has expired. Begin again."
    DENIED = 403, "access_denied", "User did not authorize the request"
    # Unknown, used, of another client, and expired for long look alike.
    INVALID_CODE = 403, "invalid_grant", "Invalid or expired device code."
    WRONG_DPOP_KEY = 403, "invalid_grant", "The device code is bound to another DPoP key."
    # Of the device authorization endpoint.
    TOO_MANY = 429, "too_many_requests", "Too many device codes were asked for. Try again later."
    # On pages.
    CODE_OVER = 400, "invalid_request", "The code of the device was used already."
    CODE_EXPIRED = 400, "invalid_request", "The code of the device has expired."
