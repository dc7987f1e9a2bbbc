"""Clients that prove possession of their key (RFC 9449), and attackers without the key."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from joserfc.jwk import ECKey, OKPKey, RSAKey

from authapi.possession import replays
from authapi.possession.proofs import thumbprint_of
from tests.authapi.asgi_client import Received
from tests.authapi.assertions import private_key

Key = Any


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def part(value: Any) -> str:
    return encoded(json.dumps(value).encode())


def new_key(algorithm: str = "ES256") -> Key:
    match algorithm:
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "ES384":
            return ec.generate_private_key(ec.SECP384R1())
        case "Ed25519":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            return private_key("prover")


def signature(key: Key, algorithm: str, signed: bytes) -> bytes:
    match algorithm:
        case "ES256" | "ES384":
            size, digest = (32, hashes.SHA256()) if algorithm == "ES256" else (48, hashes.SHA384())
            r, s = decode_dss_signature(key.sign(signed, ec.ECDSA(digest)))
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        case "Ed25519":
            return bytes(key.sign(signed))
        case "PS256":
            return bytes(key.sign(signed, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256()))
        case _:
            return bytes(key.sign(signed, padding.PKCS1v15(), hashes.SHA256()))


@dataclass
class Prover:
    """One key, and the newest nonce of the service."""

    algorithm: str = "ES256"
    key: Key = None
    nonce: str = ""
    jwk: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.key = self.key or new_key(self.algorithm)
        kind: Any = {"Ed25519": OKPKey, "ES256": ECKey, "ES384": ECKey}.get(self.algorithm, RSAKey)
        members = kind.import_key(self.key).as_dict(private=False)
        self.jwk = {name: members[name] for name in ("kty", "crv", "x", "y", "n", "e") if name in members}

    @property
    def thumbprint(self) -> str:
        return thumbprint_of(self.jwk)

    def proof(self, method: str, address: str, *, token: str = "", header: dict[str, Any] | None = None, **changes: Any) -> str:
        """Return a valid proof for a request. `changes` overrides its claims; None removes a claim."""
        claims = {"jti": secrets.token_urlsafe(12), "htm": method, "htu": address, "iat": int(time.time())}
        if token:
            claims["ath"] = encoded(hashlib.sha256(token.encode()).digest())
        if self.nonce:
            claims["nonce"] = self.nonce
        claims = {name: value for name, value in (claims | changes).items() if value is not None}
        named = {"typ": "dpop+jwt", "alg": self.algorithm, "jwk": self.jwk, **(header or {})}
        named = {name: value for name, value in named.items() if value is not None}
        signed = f"{part(named)}.{part(claims)}"
        return f"{signed}.{encoded(signature(self.key, self.algorithm, signed.encode()))}"

    def proven(self, send: Callable[[], Received]) -> Received:
        """Send a request. If it is refused with a nonce, send it again with this nonce (RFC 9449, 8)."""
        answer = send()
        named = answer.headers.get("dpop-nonce", "")
        if answer.status in (400, 401) and named and named != self.nonce:
            self.nonce = named
            return send()
        self.nonce = named or self.nonce
        return answer


def settle_memory() -> None:
    """Make the Redis of this process appear to have stored used proofs for a long time, so that proofs need no nonce by default."""
    used = replays.used_proofs()
    _, run = used._asked(("PING",))
    used._redis.set(used._name, f"{int(time.time()) - 1000}.{secrets.token_hex(4)}.{run}")
    used._known = None
