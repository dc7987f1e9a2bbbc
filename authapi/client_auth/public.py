"""`none`: a public client names itself and proves nothing."""

from __future__ import annotations

from authapi.client_auth.credential import Credential
from authapi.token_request import TokenRequest

METHOD = "none"


def presented(request: TokenRequest) -> Credential | None:
    """Return the id of the body, or None when there is none."""
    client_id = request.text("client_id")
    return Credential(METHOD, client_id) if client_id else None
