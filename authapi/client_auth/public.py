"""`none`: a public client sends its id and does not authenticate."""

from __future__ import annotations

from authapi.client_auth.credential import Credential
from authapi.token_request import TokenRequest

METHOD = "none"


def presented(request: TokenRequest) -> Credential | None:
    """Return the client id in the body; None if the body contains none."""
    client_id = request.text("client_id")
    return Credential(METHOD, client_id) if client_id else None
