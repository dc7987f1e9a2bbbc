"""Proofs at the endpoints that issue: the token endpoint and the one for pushed requests."""

from __future__ import annotations

from dataclasses import replace

from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.models import Client
from authapi.possession import presented
from authapi.possession.nonces import HEADER as NONCE_HEADER
from authapi.possession.presented import Asked
from authapi.possession.proofs import InvalidProof
from authapi.possession.replays import NonceWanted, fresh_nonce
from authapi.token_request import TokenRequest


def with_proven_key(request: TokenRequest, client: Client, *, path: str) -> TokenRequest:
    """Return the request with the thumbprint of the key that its proof has shown. Raises `RequestRefused`.

    For a request with the header `DPoP`, of a client that is authenticated. A public client needs a nonce: nothing else of it is
    fresh (contract, 3.4).
    """
    try:
        proof = presented.read(Asked(request.host, "POST", path, request.headers))
        presented.let_count(proof, tenant_id=request.host.tenant_id, needs_nonce=client.is_public)
    except InvalidProof as error:
        raise RequestRefused(OAuthCase.INVALID_DPOP_PROOF, reason=str(error)) from error
    except NonceWanted as wanted:
        raise RequestRefused(OAuthCase.USE_DPOP_NONCE, headers={NONCE_HEADER: wanted.nonce}) from wanted
    return replace(request, key=proof.thumbprint)


def nonce_headers(request: TokenRequest) -> dict[str, str]:
    """Return the nonce for the next proof of a client that has just shown one (RFC 9449, 8.2)."""
    return {NONCE_HEADER: fresh_nonce(request.host.tenant_id)} if request.key else {}
