"""What tokens are bound to: the certificate that came along with a request (RFC 8705, 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from authapi.edge.mtls import certificate_of
from authapi.token_request import TokenRequest


def binding(request: TokenRequest) -> Mapping[str, Any] | None:
    """Return the `cnf` of what is issued now: a certificate that came along binds the tokens to it."""
    certificate = certificate_of(request)
    return certificate.confirmation if certificate is not None else None


def is_held(confirmation: Mapping[str, Any] | None, request: TokenRequest) -> bool:
    """Tell whether the sender of a request shows what a token is bound to. A token without a binding asks for nothing."""
    if not confirmation:
        return True
    certificate = certificate_of(request)
    return certificate is not None and certificate.confirms(dict(confirmation))
