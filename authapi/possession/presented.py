"""Checks the DPoP proof of a request: the proof must be for this URL, have a nonce if required, and not have been used before."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from authapi.possession.proofs import InvalidProof, Proof, Target, read_proof
from authapi.possession.replays import ProofUsed, judge
from identity.hosts import HostMatch, scheme

HEADER = "dpop"
_PORTS = {"http": ":80", "https": ":443"}


@dataclass(frozen=True)
class Asked:
    """The parts of a request that a proof must match. `headers` has one line per name; untrusted certificate headers are removed."""

    host: HostMatch
    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)

    def target(self, token: str) -> Target:
        authority = self.host.authority.removesuffix(_PORTS[scheme()])
        # The `mtls` host, which requests certificates from clients, serves the same endpoint (RFC 8705, 5). So `htu` may name either host.
        return Target(self.method, scheme(), (authority, f"mtls.{authority}"), self.path, token)


def check_single(pairs: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise `InvalidProof` for more than one proof. `pairs` are the header lines as received (RFC 9449, 4.3)."""
    if sum(name.lower() == b"dpop" for name, _ in pairs) > 1:
        raise InvalidProof("There must be one DPoP header.")


def read(asked: Asked, *, token: str = "") -> Proof:
    """Return the proof of a request. Its nonce and its use are not checked yet. Raises `InvalidProof`."""
    text = asked.headers.get(HEADER, "")
    if not text:
        raise InvalidProof("The DPoP header is missing.")
    return read_proof(text, asked.target(token), now=time.time())


def let_count(proof: Proof, *, tenant_id: str, needs_nonce: bool = False) -> None:
    """Record the use of a proof. Raises `InvalidProof` for a second use, and `NonceWanted` for a missing or old nonce."""
    try:
        judge(proof, tenant_id=tenant_id, needs_nonce=needs_nonce)
    except ProofUsed as error:
        raise InvalidProof("The DPoP proof was used before.") from error
