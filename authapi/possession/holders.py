"""Bound access tokens: checks that the sender of a request holds the key or the certificate (RFC 9449, 7.1; RFC 8705, 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from authapi.edge import mtls
from authapi.edge.raw_headers import joined
from authapi.failures import RequestRefused
from authapi.possession import presented
from authapi.possession.nonces import HEADER as NONCE_HEADER
from authapi.possession.presented import Asked
from authapi.possession.proofs import ALGORITHMS, InvalidProof
from authapi.possession.replays import NonceWanted
from authapi.token_request import TokenRequest
from authapi.tokens.verifying import TokenRefused, VerifiedToken, verify_access_token, verify_access_token_async
from foundation.memory import executor
from identity.hosts import HostMatch

BEARER, DPOP = "bearer", "dpop"
SCHEMES = (BEARER, DPOP)
NONCE_TEXT = "Resource server requires nonce in DPoP proof"


class NotHeld(TokenRefused):
    """The sender has not proven the key or certificate of the token. `error` is a code of RFC 9449, 12.2 or RFC 6750, 3.1."""

    def __init__(self, error: str, message: str, *, nonce: str = "", scheme: str = "DPoP") -> None:
        super().__init__(message)
        self.error = self.error_code = error
        self._nonce = nonce
        self._scheme = scheme

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of the refusal: the challenge, and the nonce for the client's next proof."""
        algorithms = f', algs="{" ".join(ALGORITHMS)}"' if self._scheme == "DPoP" else ""
        challenge = f'{self._scheme} error="{self.error}", error_description="{self.message}"{algorithms}'
        return {"WWW-Authenticate": challenge, **({NONCE_HEADER: self._nonce} if self._nonce else {})}


@dataclass(frozen=True)
class Shown:
    """An access token in a request, with its scheme, and with the proof or certificate of the request."""

    scheme: str
    token: str = field(repr=False)
    asked: Asked

    @property
    def is_dpop(self) -> bool:
        return self.scheme == DPOP


def asked_by(pairs: Iterable[tuple[bytes, bytes]], *, host: HostMatch, method: str, path: str) -> Asked:
    """Return the parts of a request that a proof must match. `pairs` are the header lines. Raises `NotHeld` for a request with two
    proofs."""
    lines = list(pairs)
    try:
        presented.check_single(lines)
    except InvalidProof as error:
        raise NotHeld("invalid_dpop_proof", str(error)) from error
    return Asked(host, method, path, mtls.without_untrusted(joined(lines), lines, host))


def verified(scheme: str, token: str, *, host: HostMatch, asked: Callable[[], Asked]) -> VerifiedToken:
    """Verify an access token that may be bound, like `verify_access_token`. Also raises `NotHeld`.

    A token that is bound to a certificate expires with the certificate. `asked` returns the parts of the request that a proof must match.
    `asked` is not called for an unbound Bearer token.
    """
    claims = verify_access_token(token, host=host, takes_bound=True)
    return _held(claims, scheme, token, asked) if claims.confirmation or scheme == DPOP else claims


async def verified_async(scheme: str, token: str, *, host: HostMatch, asked: Callable[[], Asked]) -> VerifiedToken:
    """Do the same as `verified`, but check the proof or certificate of a bound token in a thread."""
    claims = await verify_access_token_async(token, host=host, takes_bound=True)
    if not claims.confirmation and scheme != DPOP:
        return claims
    return await executor.run(partial(_held, claims, scheme, token, asked))


def require_held(confirmation: Mapping[str, Any] | None, shown: Shown) -> float | None:
    """Check that the sender holds the key or certificate of the token; return the expiry of the certificate, None for a key.

    Raises `NotHeld`. Call it for a token with `cnf`, and for a token sent with the scheme DPoP, which must be bound to a key.
    """
    confirmation = confirmation or {}
    key, certificate = confirmation.get("jkt"), confirmation.get("x5t#S256")
    if key is None and certificate is None and confirmation:
        raise NotHeld("invalid_token", "The token has a kind of binding that this service cannot check.", scheme="Bearer")
    if key is None and shown.is_dpop:
        raise NotHeld("invalid_token", "The token is not bound to a key. Send it as a Bearer token.")
    if key is not None:
        _check_key(str(key), shown)
    return _check_certificate(confirmation, shown.asked) if certificate is not None else None


def _held(claims: VerifiedToken, scheme: str, token: str, asked: Callable[[], Asked]) -> VerifiedToken:
    end = require_held(claims.confirmation, Shown(scheme, token, asked()))
    return claims if end is None else replace(claims, expires_at=min(claims.expires_at, int(end)))


def _check_key(key: str, shown: Shown) -> None:
    if not shown.is_dpop:
        # RFC 9449, 7.1: if a bound token were accepted as a Bearer token, a thief could use it without the key.
        raise NotHeld("invalid_token", "The token is bound to a key. Send it with the scheme DPoP and a proof.")
    try:
        proof = presented.read(shown.asked, token=shown.token)
        if proof.thumbprint != key:
            raise NotHeld("invalid_token", "The token is bound to another key.")
        presented.let_count(proof, tenant_id=shown.asked.host.tenant_id)
    except InvalidProof as error:
        raise NotHeld("invalid_dpop_proof", str(error)) from error
    except NonceWanted as wanted:
        raise NotHeld("use_dpop_nonce", NONCE_TEXT, nonce=wanted.nonce) from wanted


def _check_certificate(confirmation: Mapping[str, Any], asked: Asked) -> float:
    try:
        certificate = mtls.certificate_of(TokenRequest(host=asked.host, address="", headers=asked.headers, form={}))
    except RequestRefused as refused:
        raise NotHeld("invalid_token", refused.failure.description, scheme="Bearer") from refused
    if certificate is None or not certificate.confirms(dict(confirmation)):
        raise NotHeld("invalid_token", "The token is bound to a certificate that the request does not prove.", scheme="Bearer")
    return certificate.read.not_after.timestamp()
