"""Fast path: verifies the ES256 signature of an ordinary proof, without the general code for a JWS. Pure.

The plain path is the library joserfc. The library checks every proof that this module does not verify, so only the library refuses proofs.
The fast path takes 76 µs of CPU time instead of 96 µs. On both paths, 72 µs of this time are the calculation on the elliptic curve
(docs/figures.md).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

_ALGORITHM = ECDSA(SHA256())
_HEADER = {"alg", "typ", "jwk"}
_NUMBER_BYTES = 32
# A signature has 64 bytes, which are 86 characters of base64url. The last character encodes only two bits, so it is one of four characters.
_SIGNATURE = re.compile(r"[A-Za-z0-9_-]{85}[AQgw]")
# Maximum length of a proof on the fast path, in characters. It is far below the limits of joserfc for headers and payloads.
_LONGEST = 1500


def is_verified(text: str, header: Mapping[str, Any], key: EllipticCurvePublicKey) -> bool:
    """Tell whether a compact JWS is an ordinary proof that this key has signed with ES256. False means that the plain path must decide."""
    signed, _, signature = text.rpartition(".")
    if header["alg"] != "ES256" or header.keys() != _HEADER or len(text) > _LONGEST or _SIGNATURE.fullmatch(signature) is None:
        return False
    raw = base64.urlsafe_b64decode(signature + "==")
    r, s = int.from_bytes(raw[:_NUMBER_BYTES], "big"), int.from_bytes(raw[_NUMBER_BYTES:], "big")
    try:
        key.verify(encode_dss_signature(r, s), signed.encode(), _ALGORITHM)
    except InvalidSignature:
        return False
    return True
