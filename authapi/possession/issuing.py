"""DPoP proofs at the endpoints that issue tokens or handles: the token endpoint and the endpoint for pushed requests."""

from __future__ import annotations

from dataclasses import replace

from authapi.client_auth.signatures import read_jws
from authapi.compliance.enforcing import check
from authapi.compliance.levels import NONE, level_of
from authapi.compliance.rules import KeyProof, Stage
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.models import Client
from authapi.possession import presented
from authapi.possession.nonces import HEADER as NONCE_HEADER
from authapi.possession.presented import HEADER as PROOF_HEADER
from authapi.possession.presented import Asked
from authapi.possession.proofs import InvalidProof, Proof
from authapi.possession.replays import NonceWanted, fresh_nonce
from authapi.token_request import TokenRequest


def with_proven_key(request: TokenRequest, client: Client, *, path: str) -> TokenRequest:
    """Return the request with the thumbprint of the key that its DPoP proof has proven. Raises `RequestRefused`.

    Call this function for a request with the header `DPoP`, after the client is authenticated. A public client needs a nonce, because
    without a nonce its request could be a replay (contract, 3.4).
    """
    request, proof = read_key(request, path=path)
    count_proof(request, proof, client)
    return request


def read_key(request: TokenRequest, *, path: str) -> tuple[TokenRequest, Proof]:
    """Return two values: the request with the thumbprint of its key, and the proof. Raises `RequestRefused`.

    The use of the proof is not recorded yet.
    """
    try:
        proof = presented.read(Asked(request.host, "POST", path, request.headers))
    except InvalidProof as error:
        raise RequestRefused(OAuthCase.INVALID_DPOP_PROOF, reason=str(error)) from error
    return replace(request, key=proof.thumbprint), proof


def count_proof(request: TokenRequest, proof: Proof, client: Client) -> None:
    """Check the nonce of a proof, record its use, and check its algorithm against the compliance level of the client.

    Raises `RequestRefused`.
    """
    try:
        presented.let_count(proof, tenant_id=request.host.tenant_id, needs_nonce=client.is_public)
    except InvalidProof as error:
        raise RequestRefused(OAuthCase.INVALID_DPOP_PROOF, reason=str(error)) from error
    except NonceWanted as wanted:
        raise RequestRefused(OAuthCase.USE_DPOP_NONCE, headers={NONCE_HEADER: wanted.nonce}) from wanted
    level = level_of(client.settings)
    if level != NONE:
        header, _ = read_jws(request.headers[PROOF_HEADER])
        check(level, Stage.KEY_PROOF, KeyProof(header["alg"]))


def nonce_headers(request: TokenRequest) -> dict[str, str]:
    """Return the header with the nonce for the client's next proof; empty if the request had no proof (RFC 9449, 8.2)."""
    return {NONCE_HEADER: fresh_nonce(request.host.tenant_id)} if request.key else {}
