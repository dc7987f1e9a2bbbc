"""`client_secret_post`: id and secret in the body, JSON or form."""

from __future__ import annotations

from authapi.client_auth.credential import Credential
from authapi.token_request import TokenRequest

METHOD = "client_secret_post"


def presented(request: TokenRequest) -> Credential | None:
    """Return the id and secret of the body, or None when there is no secret in it."""
    secret = request.text("client_secret")
    if secret is None:
        return None
    return Credential(METHOD, request.text("client_id") or "", (secret,))
