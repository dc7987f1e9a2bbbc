"""`client_secret_post`: client id and secret in the body, as JSON or form."""

from __future__ import annotations

from authapi.client_auth.credential import Credential
from authapi.token_request import TokenRequest

METHOD = "client_secret_post"


def presented(request: TokenRequest) -> Credential | None:
    """Return the client id and secret of the body; None if the body has no secret."""
    secret = request.text("client_secret")
    if secret is None:
        return None
    return Credential(METHOD, request.text("client_id") or "", (secret,))
