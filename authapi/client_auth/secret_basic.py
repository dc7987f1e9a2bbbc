"""`client_secret_basic`: client id and secret in the `Authorization` header, raw or percent-encoded."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote_plus

from authapi.client_auth.credential import Credential, MalformedCredential
from authapi.token_request import TokenRequest

METHOD = "client_secret_basic"


def presented(request: TokenRequest) -> Credential | None:
    """Return the client id and secret of the header. None if the header has another scheme."""
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        client_id, separator, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError) as error:
        raise MalformedCredential from error
    if not separator:
        raise MalformedCredential
    # RFC 6749, 2.3.1 requires form encoding of the client id and the secret. Many clients send raw values (spec, "five methods").
    spellings = tuple(dict.fromkeys((secret, unquote_plus(secret))))
    return Credential(METHOD, unquote_plus(client_id), spellings)
