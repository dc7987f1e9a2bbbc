"""DPoP proofs for a run, made before the measurement: one key per connection, a unique `jti` per proof."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Iterator

import orjson
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

_BYTES = 32


class Prover:
    """A key for ES256, and its proofs for POST requests to one URL."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._key = ec.generate_private_key(ec.SECP256R1())
        numbers = self._key.public_key().public_numbers()
        jwk = {"crv": "P-256", "kty": "EC", "x": _encoded(numbers.x.to_bytes(_BYTES)), "y": _encoded(numbers.y.to_bytes(_BYTES))}
        self._header = _encoded(orjson.dumps({"alg": "ES256", "typ": "dpop+jwt", "jwk": jwk}))

    def proofs(self, count: int, *, nonce: str = "") -> Iterator[str]:
        """Make this many proofs now, and return an iterator over them."""
        return iter([self.proof(nonce=nonce) for _ in range(count)])

    def proof(self, *, nonce: str = "") -> str:
        claims = {"jti": secrets.token_urlsafe(16), "htm": "POST", "htu": self._address, "iat": int(time.time())}
        signed = f"{self._header}.{_encoded(orjson.dumps(claims | ({'nonce': nonce} if nonce else {})))}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_encoded(r.to_bytes(_BYTES) + s.to_bytes(_BYTES))}"


def thumbprint(token: str) -> str:
    """Return the `jkt` to which a JWT is bound, empty for an unbound JWT. The measurement uses it to check the tokens of the servers."""
    if token.count(".") != 2:
        return ""
    payload = token.split(".")[1]
    claims = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return str(claims.get("cnf", {}).get("jkt", ""))


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
