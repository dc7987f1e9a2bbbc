"""`POST /users/{id}/impersonate`: a login as another user, which this service does not support (ADR 0103)."""

from __future__ import annotations

from typing import NoReturn

from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.failures.oauth import OAuthCase
from authapi.protocols.legacy.requests import LegacyRequest
from authapi.tokens.verifying import TokenRefused, verify_access_token

_SCHEME = "bearer"


def impersonate(request: LegacyRequest) -> NoReturn:
    """Raise `RequestRefused` in every case. With a valid token, the error says that impersonation is not available."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    try:
        if scheme.lower() != _SCHEME:
            raise TokenRefused
        verify_access_token(token.strip(), host=request.host)
    except TokenRefused as error:
        raise RequestRefused(OAuthCase.INVALID_BEARER) from error
    raise RequestRefused(LegacyCase.IMPERSONATION_OFF)
