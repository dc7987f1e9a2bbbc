"""Authenticates the client at endpoints that only confidential clients may use. Refusals have the codes of RFC 6749, 5.2."""

from __future__ import annotations

from authapi import client_auth
from authapi.failures import Case, RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.models import Client
from authapi.token_request import TokenRequest


def confidential_client(request: TokenRequest, *, public: Case) -> Client:
    """Return the authenticated client of a request.

    Raises `RequestRefused`. For a public client, the exception has the case `public`.
    """
    try:
        client = client_auth.authenticate(request)
    except RequestRefused as refused:
        if refused.case is not OAuthCase.WRONG_CLIENT_AUTHENTICATION:
            raise
        raise RequestRefused(OAuthCase.WRONG_CLIENT_OF_STANDARD) from refused
    if client.is_public:
        raise RequestRefused(public)
    return client
