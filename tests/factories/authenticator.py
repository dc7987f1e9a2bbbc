"""A software authenticator. It creates passkeys and signs with them, and can return invalid responses on request."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url

ORIGIN = "http://localhost"
_PRESENT, _VERIFIED, _ATTESTED = 0x01, 0x04, 0x40


@dataclass
class Authenticator:
    """One passkey. `origin` is the page for which it signs, and `verifies` tells whether the authenticator verifies its user."""

    origin: str = ORIGIN
    verifies: bool = True
    count: int = 1
    rp_id: str = "localhost"
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    user_handle: str = ""

    def made(self, options: dict[str, Any]) -> str:
        """Return the response of a browser after it created this passkey."""
        self.user_handle = options["user"]["id"]
        numbers = self.key.public_key().public_numbers()
        cose = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")})
        attested = bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id + cose
        data = self._data(_ATTESTED) + attested
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        told = {"clientDataJSON": self._client("webauthn.create", options), "attestationObject": bytes_to_base64url(attestation)}
        return self._answer({**told, "transports": ["internal", "unheard-of"]})

    def signed(self, options: dict[str, Any]) -> str:
        """Return the response of a browser after a signature. Each signature increases the counter."""
        self.count += 1
        data, client = self._data(0), self._client("webauthn.get", options)
        signature = self.key.sign(data + hashlib.sha256(base64url_to_bytes(client)).digest(), ec.ECDSA(hashes.SHA256()))
        told = {"clientDataJSON": client, "authenticatorData": bytes_to_base64url(data), "signature": bytes_to_base64url(signature)}
        return self._answer({**told, "userHandle": self.user_handle})

    def _data(self, flags: int) -> bytes:
        flags |= _PRESENT | (_VERIFIED if self.verifies else 0)
        return hashlib.sha256(self.rp_id.encode()).digest() + bytes([flags]) + self.count.to_bytes(4, "big")

    def _client(self, kind: str, options: dict[str, Any]) -> str:
        said = {"type": kind, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": False}
        return bytes_to_base64url(json.dumps(said).encode())

    def _answer(self, response: dict[str, Any]) -> str:
        named = bytes_to_base64url(self.credential_id)
        return json.dumps({"id": named, "rawId": named, "type": "public-key", "response": response, "clientExtensionResults": {}})
